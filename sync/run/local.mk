# One sync from start to end.
sync_libsbsync_core_la_SOURCES += \
	%D%/retry.c %D%/retry.h \
	%D%/run-attrs.c %D%/run-attrs.h \
	%D%/run-early.c \
	%D%/run-guard.c %D%/run-guard.h \
	%D%/run-link.c \
	%D%/run-priv.h \
	%D%/run-pull.c \
	%D%/partial.c %D%/partial.h \
	%D%/run-push.c \
	%D%/run-scan.c \
	%D%/run.c %D%/run.h \
	%D%/step.c %D%/step.h \
	%D%/sync-mirror.c \
	%D%/sync-result.c %D%/sync-result.h
