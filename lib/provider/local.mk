# lib/provider: the contract, the registry, one file a backend. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/beside.c %D%/beside.h \
	%D%/call.c \
	%D%/cloud.c \
	%D%/command.c \
	%D%/dockerlink.c %D%/dockerlink.h \
	%D%/dockerlink-box.c \
	%D%/dockerlink-engine.c \
	%D%/dockerlink-net.c \
	%D%/dockerlink-opts.c \
	%D%/e2blink.c %D%/e2blink.h \
	%D%/handle.c \
	%D%/handle-far.c \
	%D%/hostlink.c %D%/hostlink.h \
	%D%/hostlink-archive.c \
	%D%/hostlink-carry.c \
	%D%/launch-spec.c \
	%D%/launcher.c \
	%D%/launcher-local.c %D%/launchers.h \
	%D%/life.c \
	%D%/marks.c %D%/marks.h \
	%D%/mounted.c %D%/mounted.h \
	%D%/orphans.c \
	%D%/pairs.c %D%/pairs.h \
	%D%/permission.c \
	%D%/prepared.c \
	%D%/profile.c \
	%D%/profile-json.c %D%/profile-json.h \
	%D%/profiles.c %D%/profiles.h \
	%D%/profiles-control.c \
	%D%/profiles-effect.c \
	%D%/profiles-field.c \
	%D%/provider.c %D%/provider.h \
	%D%/provider-docker.c \
	%D%/provider-e2b.c \
	%D%/provider-host.c \
	%D%/provider-local.c \
	%D%/provider-options.c \
	%D%/provider-ssh.c \
	%D%/registry.c \
	%D%/registry-builtin.c \
	%D%/sandbox-id.c \
	%D%/secrets.c %D%/secrets.h \
	%D%/sshlink.c %D%/sshlink.h \
	%D%/sshlink-opts.c \
	%D%/state.c \
	%D%/state-dir.c %D%/state-dir.h \
	%D%/state-json.c %D%/state-json.h \
	%D%/terminal-output.c \
	%D%/tool-host.c \
	%D%/toolset.h \
	%D%/toolset-far.c \
	%D%/toolset-near.c \
	%D%/trust.c %D%/trust.h \
	%D%/word.c
