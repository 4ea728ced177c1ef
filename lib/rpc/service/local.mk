# The procedures of a sandbox host.
lib_libsandbox_core_la_SOURCES += \
	%D%/access.c %D%/access.h \
	%D%/daemon.c %D%/daemon.h \
	%D%/events.c %D%/events.h \
	%D%/host-access.c \
	%D%/host-attach.c \
	%D%/host-event.c \
	%D%/host-priv.h \
	%D%/host-json.c \
	%D%/host-hide.c \
	%D%/host-metrics.c \
	%D%/host-network.c \
	%D%/host-process.c \
	%D%/host-session.c \
	%D%/host-snapshot.c \
	%D%/host-tool.c \
	%D%/host.c %D%/host.h \
	%D%/idem.c %D%/idem.h \
	%D%/replay.c %D%/replay.h
