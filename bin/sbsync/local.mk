# sbsync: one file a verb (cmd-VERB.c); the table of verbs is in main.c.
bin_PROGRAMS += sbsync
sbsync_SOURCES = \
	bin/common/progress.c \
	bin/common/progress.h \
	$(COMPLETE_SOURCES) \
	%D%/ask.c \
	%D%/cmd-agent.c \
	%D%/cmd-completion.c \
	%D%/cmd-conflicts.c \
	%D%/cmd-diff.c \
	%D%/cmd-doctor.c \
	%D%/cmd-edit.c \
	%D%/cmd-ignore.c \
	%D%/cmd-log.c \
	%D%/cmd-ls.c \
	%D%/cmd-mirror.c \
	%D%/cmd-pause.c \
	%D%/cmd-recover.c \
	%D%/cmd-resolve.c \
	%D%/cmd-rm.c \
	%D%/cmd-start.c \
	%D%/cmd-status.c \
	%D%/cmd-stop.c \
	%D%/cmd-sync.c \
	%D%/cmd-undo.c \
	%D%/cmd-watch.c \
	%D%/diff-content.c \
	%D%/guards.c \
	%D%/habits.c \
	%D%/main.c \
	%D%/mergetool.c \
	%D%/options.c \
	%D%/options.h \
	%D%/report.c \
	%D%/sbsync.h \
	%D%/sessions.c \
	%D%/show-diff.c \
	%D%/signals.c \
	%D%/sync-once.c
sbsync_LDADD = sync/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS) $(JANSSON_LIBS)
