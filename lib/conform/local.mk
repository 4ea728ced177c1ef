# lib/conform: the conformance suite of providers. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/conform.c %D%/conform-priv.h \
	%D%/control-check.c %D%/control-check-priv.h \
	%D%/control-check-life.c \
	%D%/control-check-process.c \
	%D%/control-check-state.c \
	%D%/conform-sandbox.c \
	%D%/conform-keep.c \
	%D%/conform-launch.c \
	%D%/conform-life.c \
	%D%/conform-limits.c \
	%D%/conform-sync.c \
	%D%/conform-tools.c
