# How a tree is read: the walk, ignore rules, noticing changes.
sync_libsbsync_core_la_SOURCES += \
	%D%/ignore-codec.c \
	%D%/ignore-match.c \
	%D%/ignore-parse.c \
	%D%/ignore-priv.h \
	%D%/ignore.c %D%/ignore.h \
	%D%/scan-hash.c \
	%D%/scan-links.c \
	%D%/scan-priv.h \
	%D%/scan-read.c \
	%D%/scan-stat.c \
	%D%/scan-walk.c \
	%D%/scan.c %D%/scan.h \
	%D%/watch.c %D%/watch.h
