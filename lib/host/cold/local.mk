# lib/host/cold: archives of sessions in cold storage. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/cold.c %D%/cold.h \
	%D%/cold-gc.c \
	%D%/coldcut.c %D%/coldcut.h \
	%D%/coldframe.c %D%/coldframe.h \
	%D%/coldindex.c %D%/coldindex.h \
	%D%/coldindex-text.c \
	%D%/coldkey.c %D%/coldkey.h \
	%D%/coldlog.c %D%/coldlog.h \
	%D%/coldpace.c %D%/coldpace.h \
	%D%/coldread.c %D%/coldread.h \
	%D%/coldstore.c %D%/coldstore.h \
	%D%/coldstore-dir.c \
	%D%/coldstore-s3.c \
	%D%/coldwrite.c %D%/coldwrite.h
