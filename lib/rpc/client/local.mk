# The Connect client, environments, the host in this process.
lib_libsandbox_core_la_SOURCES += \
	%D%/attach.c \
	%D%/client.c \
	%D%/embed.c %D%/embed.h \
	%D%/env-int.h \
	%D%/env-tool.c \
	%D%/env.c
