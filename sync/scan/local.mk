# How a tree is read: the walk, ignore rules, noticing changes.
sync_libsbsync_core_la_SOURCES += \
	%D%/gitconfig.c %D%/gitconfig.h \
	%D%/gitindex.c %D%/gitindex.h \
	%D%/gitrules.c %D%/gitrules.h \
	%D%/rules.c %D%/rules.h \
	%D%/rules-codec.c \
	%D%/rules-filter.c \
	%D%/rules-match.c \
	%D%/rules-parse.c \
	%D%/rules-priv.h \
	%D%/rules-tracked.c \
	%D%/scan.c %D%/scan.h \
	%D%/scan-hash.c \
	%D%/scan-links.c \
	%D%/scan-priv.h \
	%D%/scan-read.c \
	%D%/scan-stat.c \
	%D%/scan-walk.c \
	%D%/notice.c %D%/notice.h
