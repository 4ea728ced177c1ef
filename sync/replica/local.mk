# One side of a sync: its root and lock, sending, receiving, stage, commit, journal, the agent.
sync_libsbsync_core_la_SOURCES += \
	%D%/agent.c %D%/agent.h \
	%D%/agent-watch.c %D%/agent-watch.h \
	%D%/attrs-tree.c %D%/attrs-tree.h \
	%D%/commit.c %D%/commit.h \
	%D%/commit-attrs.c %D%/commit-attrs.h \
	%D%/commit-names.c %D%/commit-names.h \
	%D%/commit-times.c %D%/commit-times.h \
	%D%/commit-ops.c %D%/commit-ops.h \
	%D%/flush-early.c %D%/flush-early.h \
	%D%/inflow.c %D%/inflow.h \
	%D%/journal.c %D%/journal.h \
	%D%/recall.c %D%/recall.h \
	%D%/receive.c %D%/receive.h \
	%D%/receive-commit.c \
	%D%/receive-data.c \
	%D%/receive-links.c %D%/receive-links.h \
	%D%/receive-priv.h \
	%D%/receive-write.c \
	%D%/replica.c %D%/replica.h \
	%D%/send.c %D%/send.h \
	%D%/stage.c %D%/stage.h \
	%D%/sync-agent.c
