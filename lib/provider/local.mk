# lib/provider: the contract, the registry, one file a backend. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/builtin.c \
	%D%/handle.c \
	%D%/handle-far.c \
	%D%/hostlink.c %D%/hostlink.h \
	%D%/launch-spec.c \
	%D%/launcher-local.c %D%/launchers.h \
	%D%/marks.c %D%/marks.h \
	%D%/pairs.c %D%/pairs.h \
	%D%/permission.c \
	%D%/prepare.c \
	%D%/profile.c \
	%D%/profiles.c %D%/profiles.h \
	%D%/profiles-field.c \
	%D%/provider.c %D%/provider.h \
	%D%/provider-host.c \
	%D%/provider-local.c \
	%D%/provider-ssh.c \
	%D%/registry.c \
	%D%/sshbox.c %D%/sshbox.h \
	%D%/sshbox-way.c \
	%D%/state.c \
	%D%/state-json.c %D%/state-json.h \
	%D%/texts.c \
	%D%/toolbox.h \
	%D%/toolbox-far.c \
	%D%/toolbox-near.c \
	%D%/toolhost.c \
	%D%/words.c
