# The Connect server; knows nothing of sandboxes.
lib_libsandbox_core_la_SOURCES += \
	%D%/auth.c %D%/auth.h \
	%D%/call.c \
	%D%/http.c %D%/http.h \
	%D%/listen.c \
	%D%/login.c \
	%D%/metrics.c %D%/metrics.h \
	%D%/pool.c %D%/pool.h \
	%D%/reply.c \
	%D%/request.c \
	%D%/server-priv.h \
	%D%/server.c %D%/server.h \
	%D%/share.c %D%/share.h \
	%D%/strict.c %D%/strict.h \
	%D%/stream.c \
	%D%/tls.c %D%/tls.h \
	%D%/upgrade.c \
	%D%/watchdog.c
