# sbctl: sandboxes from the command line. One file a group of verbs; their tables are in main.c.
bin_PROGRAMS += sbctl
sbctl_SOURCES = \
	%D%/attach.c \
	%D%/box.c %D%/box.h \
	%D%/boxes.c \
	%D%/host.c %D%/host.h \
	%D%/host-show.c \
	%D%/host-stream.c \
	%D%/host-verbs.c \
	%D%/main.c %D%/sbctl.h \
	%D%/profiles.c \
	%D%/report.c \
	%D%/run.c
sbctl_LDADD = lib/libsandbox-core.la sync/libsbsync-core.la \
	$(SANDBOX_LIBS) $(SYNC_LIBS) $(SSH2_LIBS)
