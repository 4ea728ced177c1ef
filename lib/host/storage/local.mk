# Where sessions and snapshots are kept.
lib_libsandbox_core_la_SOURCES += \
	%D%/changes.c %D%/changes.h \
	%D%/idcheck.c %D%/idcheck.h \
	%D%/storage.h \
	%D%/storage-local.c \
	%D%/storage-zfs.c \
	%D%/storage-zfs-grave.c \
	%D%/storage-zfs-list.c \
	%D%/storage-zfs-priv.h \
	%D%/storage-zfs-stream.c \
	%D%/treecopy.c %D%/treecopy.h \
	%D%/zfs.c %D%/zfs.h
