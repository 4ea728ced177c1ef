# Where sessions and snapshots are kept.
lib_libsandbox_core_la_SOURCES += \
	%D%/changes.c %D%/changes.h \
	%D%/idmap.c %D%/idmap.h \
	%D%/idcheck.c %D%/idcheck.h \
	%D%/claim.c %D%/claim.h \
	%D%/storage.c %D%/storage.h \
	%D%/storage-zfs.c \
	%D%/overlay-capture.c %D%/overlay-capture.h \
	%D%/overlay-layer.c %D%/overlay-layer.h \
	%D%/overlay-log.c %D%/overlay-log.h \
	%D%/overlay-merge.c \
	%D%/overlay-mount.c %D%/overlay-mount.h \
	%D%/overlay-node.c %D%/overlay-node.h \
	%D%/overlay-state.c %D%/overlay-state.h \
	%D%/overlay-stream-write.c \
	%D%/overlay-stream.c %D%/overlay-stream.h \
	%D%/overlay-view.c %D%/overlay-view.h \
	%D%/btrfs.c %D%/btrfs.h \
	%D%/btrfs-layer.c %D%/btrfs-layer.h \
	%D%/rootcheck.c %D%/rootcheck.h \
	%D%/storage-btrfs-diff.c \
	%D%/storage-btrfs-hold.c \
	%D%/storage-btrfs-list.c \
	%D%/storage-btrfs-priv.h \
	%D%/storage-btrfs-stream.c \
	%D%/storage-btrfs.c \
	%D%/storage-local.c \
	%D%/storage-overlay-base.c \
	%D%/storage-overlay-boot.c \
	%D%/storage-overlay-diff.c \
	%D%/storage-overlay-list.c \
	%D%/storage-overlay-names.c \
	%D%/storage-overlay-priv.h \
	%D%/storage-overlay-snap.c \
	%D%/storage-overlay-stream.c \
	%D%/storage-overlay-swap.c \
	%D%/storage-overlay-work.c \
	%D%/storage-overlay.c \
	%D%/storage-zfs-grave.c \
	%D%/storage-zfs-list.c \
	%D%/storage-zfs-priv.h \
	%D%/storage-zfs-stream.c \
	%D%/treecopy.c %D%/treecopy.h \
	%D%/zfs.c %D%/zfs.h
