# lib/provider: the contract, the registry, one file a backend. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/builtin.c \
	%D%/handle.c \
	%D%/profile.c \
	%D%/provider.c %D%/provider.h \
	%D%/registry.c \
	%D%/state.c \
	%D%/state-json.c %D%/state-json.h \
	%D%/texts.c \
	%D%/words.c
