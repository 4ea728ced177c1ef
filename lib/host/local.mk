# lib/host: the sandbox host. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/event.c \
	%D%/health.c \
	%D%/host.c %D%/hostimpl.h \
	%D%/host-destroy.c \
	%D%/host-fork.c \
	%D%/host-hold.c \
	%D%/host-op.c \
	%D%/host-pause.c \
	%D%/host-rollback.c \
	%D%/host-runtime.c \
	%D%/host-session.c \
	%D%/host-snapshot.c \
	%D%/hostdb.c %D%/hostdb.h \
	%D%/hostdb-load.c \
	%D%/hsess.c %D%/hsess.h \
	%D%/process.c %D%/process.h \
	%D%/process-log.c \
	%D%/process-port.c \
	%D%/procmon.c \
	%D%/proxy.c %D%/proxy.h \
	%D%/reconcile.c \
	%D%/recover.c \
	%D%/state.c %D%/state.h \
	%D%/worker.c

include lib/host/storage/local.mk
include lib/host/runtime/local.mk
include lib/host/tool/local.mk
