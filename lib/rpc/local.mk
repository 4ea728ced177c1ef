# lib/rpc: the Connect server and client.
lib_libsandbox_core_la_SOURCES += \
	%D%/attach.c \
	%D%/auth.c %D%/auth.h \
	%D%/base64.c %D%/base64.h \
	%D%/call.c \
	%D%/client.c \
	%D%/code.c %D%/code.h \
	%D%/embed.c %D%/embed.h \
	%D%/env.c %D%/env-int.h %D%/env-tool.c \
	%D%/envelope.c %D%/envelope.h \
	%D%/frame.c %D%/frame.h \
	%D%/field.c %D%/field.h \
	%D%/events.c %D%/events.h \
	%D%/gzip.c %D%/gzip.h \
	%D%/host.c %D%/host.h %D%/host-int.h \
	%D%/host-attach.c \
	%D%/host-event.c \
	%D%/host-json.c \
	%D%/host-metrics.c \
	%D%/host-process.c \
	%D%/host-session.c \
	%D%/host-snapshot.c \
	%D%/host-tool.c \
	%D%/idem.c %D%/idem.h \
	%D%/json.c \
	%D%/listen.c \
	%D%/metrics.c %D%/metrics.h \
	%D%/pool.c %D%/pool.h \
	%D%/reply.c \
	%D%/request.c \
	%D%/server.c %D%/server.h %D%/server-int.h \
	%D%/stream.c \
	%D%/upgrade.c \
	%D%/watch.c
