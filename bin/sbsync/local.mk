# sbsync: one file a verb (cmd-VERB.c); the table of verbs is in main.c.
bin_PROGRAMS += sbsync
sbsync_SOURCES = \
	%D%/cmd-agent.c \
	%D%/cmd-conflicts.c \
	%D%/cmd-diff.c \
	%D%/cmd-doctor.c \
	%D%/cmd-ignore.c \
	%D%/cmd-log.c \
	%D%/cmd-ls.c \
	%D%/cmd-mirror.c \
	%D%/cmd-recover.c \
	%D%/cmd-resolve.c \
	%D%/cmd-rm.c \
	%D%/cmd-start.c \
	%D%/cmd-status.c \
	%D%/cmd-stop.c \
	%D%/cmd-sync.c \
	%D%/cmd-undo.c \
	%D%/cmd-watch.c \
	%D%/main.c \
	%D%/options.c \
	%D%/options.h \
	%D%/progress.c \
	%D%/report.c \
	%D%/sbsync.h \
	%D%/sessions.c \
	%D%/signals.c \
	%D%/sync-once.c
sbsync_LDADD = sync/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS) $(JANSSON_LIBS)
