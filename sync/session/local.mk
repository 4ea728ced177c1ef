# Sessions: state, turns, conflicts, undo, watch.
sync_libsbsync_core_la_SOURCES += \
	%D%/session.c \
	%D%/session-base.c %D%/session-base.h \
	%D%/session-brake.c %D%/session-brake.h \
	%D%/session-conflicts.c %D%/session-conflicts.h \
	%D%/session-edit.c \
	%D%/session-log.c %D%/session-log.h \
	%D%/session-local.c %D%/session-local.h \
	%D%/session-hold.c %D%/session-hold.h \
	%D%/session-policy.c %D%/session-policy.h \
	%D%/session-priv.h \
	%D%/session-resolve.c %D%/session-resolve.h \
	%D%/session-rules.c %D%/session-rules.h \
	%D%/session-run.c %D%/session-run.h \
	%D%/session-store.c %D%/session-store.h \
	%D%/session-undo.c %D%/session-undo.h \
	%D%/session-underway.c %D%/session-underway.h \
	%D%/session-undo-run.c \
	%D%/session-unsaved.c %D%/session-unsaved.h \
	%D%/session-watch.c \
	%D%/session-watcher.c %D%/session-watcher.h
