# One sync from start to end.
sync_libsbsync_core_la_SOURCES += \
	%D%/connect.c %D%/connect.h \
	%D%/mirror-early.c \
	%D%/mirror-int.h \
	%D%/mirror-pull.c \
	%D%/mirror-push.c \
	%D%/mirror.c \
	%D%/result.c %D%/result.h
