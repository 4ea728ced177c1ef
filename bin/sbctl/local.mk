# sbctl: one file a verb (cmd-VERB.c, cmd-host-VERB.c); the tables of verbs are in main.c and
# cmd-host.c.
bin_PROGRAMS += sbctl
sbctl_SOURCES = \
	bin/common/progress.c \
	bin/common/progress.h \
	$(COMPLETE_SOURCES) \
	%D%/choose-profile.c \
	%D%/cmd-cold.c \
	%D%/cmd-completion.c \
	%D%/cmd-control.c \
	%D%/cmd-control-process.c \
	%D%/cmd-control-sandbox.c \
	%D%/control-options.c \
	%D%/control.h \
	%D%/cmd-destroy.c \
	%D%/cmd-docker.c \
	%D%/cmd-doctor.c \
	%D%/cmd-e2b.c \
	%D%/cmd-events.c \
	%D%/docker-agent.c \
	%D%/cmd-exec.c \
	%D%/cmd-forget.c \
	%D%/cmd-host-about.c \
	%D%/cmd-host-attach.c \
	%D%/cmd-host-events.c \
	%D%/cmd-host-exec.c \
	%D%/cmd-host-logs.c \
	%D%/cmd-host-process.c \
	%D%/cmd-host-session.c \
	%D%/cmd-host-snapshot.c \
	%D%/cmd-host-ssh.c \
	%D%/cmd-host-tool.c \
	%D%/cmd-host.c \
	%D%/cmd-ls.c \
	%D%/cmd-mcp.c \
	%D%/cmd-profile.c \
	%D%/cmd-providers.c \
	%D%/cmd-recover.c \
	%D%/cmd-run.c \
	%D%/cmd-shell.c \
	%D%/cmd-show.c \
	%D%/cmd-stop.c \
	%D%/cmd-sync.c \
	%D%/cmd-trust.c \
	%D%/cmd-turn.c \
	%D%/consent.c \
	%D%/ctl.c \
	%D%/ctl.h \
	%D%/foreground.c \
	%D%/host-call.c \
	%D%/host-content.c \
	%D%/host-options.c \
	%D%/host-print.c \
	%D%/host-request.c \
	%D%/host.h \
	%D%/main.c \
	%D%/options.h \
	%D%/pick.c \
	%D%/print.c \
	%D%/report-sync.c \
	%D%/show-state.c \
	%D%/signals.c \
	%D%/turns.c \
	%D%/work-in.c
sbctl_LDADD = lib/libsandbox-core.la sync/libsbsync-core.la \
	$(SANDBOX_LIBS) $(SYNC_LIBS) $(SSH2_LIBS)
