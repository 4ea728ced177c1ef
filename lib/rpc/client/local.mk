# The Connect client, environments, the host in this process.
lib_libsandbox_core_la_SOURCES += \
	%D%/attach-client.c \
	%D%/client.c \
	%D%/embed.c %D%/embed.h \
	%D%/env-events.c \
	%D%/env-priv.h \
	%D%/env-tool.c \
	%D%/env.c
