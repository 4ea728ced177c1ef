# lib/session: sandboxes from start to end, recorded before each step. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/keeper.c %D%/keeper.h \
	%D%/record.c \
	%D%/sandbox.c \
	%D%/sandbox-event.c \
	%D%/sandbox-hook.c \
	%D%/sandbox-launch.c \
	%D%/sandbox-recover.c \
	%D%/sandbox-start.c \
	%D%/sandbox-stop.c \
	%D%/secret.c
