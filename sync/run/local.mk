# One sync from start to end.
sync_libsbsync_core_la_SOURCES += \
	%D%/connect.c %D%/connect.h \
	%D%/mirror.c \
	%D%/mirror-early.c \
	%D%/mirror-int.h \
	%D%/mirror-pull.c \
	%D%/mirror-push.c \
	%D%/retry.c %D%/retry.h \
	%D%/sync-result.c %D%/sync-result.h
