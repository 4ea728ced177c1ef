# lib/session: sandboxes from start to end, recorded before each step. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/keeper.c %D%/session-priv.h \
	%D%/keeper-forget.c \
	%D%/keeper-list.c \
	%D%/record.c \
	%D%/sandbox.c \
	%D%/event.c \
	%D%/hook.c \
	%D%/sandbox-env.c \
	%D%/sandbox-launch.c \
	%D%/keeper-recover.c \
	%D%/sandbox-start.c \
	%D%/sandbox-stop.c \
	%D%/state-owner.c
