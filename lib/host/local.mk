# lib/host: the sandbox host. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/align.c %D%/align.h \
	%D%/event.c %D%/event.h \
	%D%/grow.h \
	%D%/health.c %D%/health.h \
	%D%/host.c %D%/host.h \
	%D%/host-bounds.c %D%/host-bounds.h \
	%D%/host-check.c \
	%D%/host-cold.c %D%/host-cold.h \
	%D%/host-cold-record.c \
	%D%/host-cold-rest.c \
	%D%/host-cold-resume.c \
	%D%/host-destroy.c %D%/host-destroy.h \
	%D%/host-diff.c \
	%D%/host-fork.c %D%/host-fork.h \
	%D%/host-hold.c \
	%D%/host-info.c \
	%D%/host-live.c %D%/host-live.h \
	%D%/host-map.c %D%/host-map.h \
	%D%/host-network.c %D%/host-network.h \
	%D%/host-op.c %D%/host-op.h \
	%D%/host-pause.c \
	%D%/host-priv.h \
	%D%/host-port.c \
	%D%/host-process.c \
	%D%/host-process-log.c \
	%D%/host-rollback.c %D%/host-rollback.h \
	%D%/host-runtime.c %D%/host-runtime.h \
	%D%/host-session.c %D%/host-session.h \
	%D%/host-snapshot.c %D%/host-snapshot.h \
	%D%/host-storage.c %D%/host-storage.h \
	%D%/host-stream.c \
	%D%/host-turn.c \
	%D%/hostdb.c %D%/hostdb.h \
	%D%/hostdb-load.c \
	%D%/hostdb-priv.h \
	%D%/hsess.c %D%/hsess.h \
	%D%/owner.c %D%/owner.h \
	%D%/proc.c %D%/proc.h \
	%D%/proc-port.c \
	%D%/procmon.c %D%/procmon.h \
	%D%/porthead.c %D%/porthead.h \
	%D%/proxy.c %D%/proxy.h \
	%D%/recover.c %D%/recover.h \
	%D%/retention.c %D%/retention.h \
	%D%/snap.c %D%/snap.h \
	%D%/state.c %D%/state.h \
	%D%/worker.c %D%/worker.h
EXTRA_DIST += %D%/README.md

include lib/host/cold/local.mk
include lib/host/storage/local.mk
include lib/host/runtime/local.mk
include lib/host/files/local.mk
include lib/host/tool/local.mk
include lib/host/guest/local.mk
