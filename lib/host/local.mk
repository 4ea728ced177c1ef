# lib/host: the sandbox host. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/attach.c \
	%D%/boxfilter.c %D%/boxfilter.h \
	%D%/changes.c %D%/changes.h \
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
	%D%/idcheck.c %D%/idcheck.h \
	%D%/process.c %D%/process.h \
	%D%/process-log.c \
	%D%/process-port.c \
	%D%/procmon.c \
	%D%/proctree.c %D%/proctree.h \
	%D%/proxy.c %D%/proxy.h \
	%D%/reach.c %D%/reach.h \
	%D%/reconcile.c \
	%D%/recover.c \
	%D%/runtime.c %D%/runtime.h \
	%D%/runtime-box.c %D%/runtime-box.h \
	%D%/runtime-bwrap.c \
	%D%/runtime-cgroup.c %D%/runtime-cgroup.h \
	%D%/runtime-dial.c \
	%D%/runtime-gvisor.c \
	%D%/runtime-none.c \
	%D%/runtime-oci.c %D%/runtime-oci.h \
	%D%/runtime-root.c \
	%D%/runtime-serve.c %D%/runtime-serve.h \
	%D%/state.c %D%/state.h \
	%D%/storage.h \
	%D%/storage-local.c \
	%D%/storage-zfs.c %D%/storage-zfs.h \
	%D%/storage-zfs-grave.c \
	%D%/storage-zfs-list.c \
	%D%/storage-zfs-stream.c \
	%D%/tool.c \
	%D%/tool-file.c \
	%D%/tool-git.c \
	%D%/tool-pattern.c \
	%D%/tool-search.c \
	%D%/tool-walk.c %D%/tool-walk.h \
	%D%/toolcall.c %D%/toolcall.h \
	%D%/toolrun.c %D%/toolrun.h \
	%D%/treecopy.c %D%/treecopy.h \
	%D%/worker.c \
	%D%/zfs.c %D%/zfs.h
