# sbctl: sandboxes from the command line. One file a group of verbs; their tables are in main.c.
bin_PROGRAMS += sbctl
sbctl_SOURCES = \
	%D%/host.c %D%/host.h \
	%D%/host-show.c \
	%D%/host-stream.c \
	%D%/host-verbs.c \
	%D%/main.c %D%/sbctl.h
sbctl_LDADD = lib/libsandbox-core.la sync/libsbsync-core.la $(SANDBOX_LIBS) $(SYNC_LIBS) $(SSH2_LIBS)
