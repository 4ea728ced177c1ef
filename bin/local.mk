# The commands: sbsync, sbctl, sbhostd.

include bin/sb-box/local.mk
include bin/sbctl/local.mk
include bin/sbhostd/local.mk
include bin/sbprovider-check/local.mk
bin_PROGRAMS += sbsync
sbsync_SOURCES = \
	%D%/sbsync/cmd-agent.c \
	%D%/sbsync/cmd-doctor.c \
	%D%/sbsync/cmd-mirror.c \
	%D%/sbsync/cmd-session.c \
	%D%/sbsync/cmd-session-local.c \
	%D%/sbsync/cmd-sessions.c \
	%D%/sbsync/main.c \
	%D%/sbsync/options.c \
	%D%/sbsync/progress.c \
	%D%/sbsync/report.c \
	%D%/sbsync/sbsync.h \
	%D%/sbsync/signals.c \
	%D%/sbsync/units.h \
	%D%/sbsync/verbs.c
sbsync_LDADD = sync/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS) $(JANSSON_LIBS)

# The agent alone, without shared libraries: what is sent to machines that have no sbsync. A build
# that cannot have it (sanitizers) makes one with shared libraries for the tests, which stay on this
# machine; it is not installed.
sbsync_agent_SOURCES = %D%/sbsync-agent/main.c
if STATIC_AGENT
pkglibexec_PROGRAMS += sbsync-agent
sbsync_agent_LDFLAGS = $(AM_LDFLAGS) -all-static -Wl,--gc-sections -s
sbsync_agent_LDADD = sync/libsbsync-core.la lib/tool/libtools.la lib/base/libbase.la \
	$(STATIC_AGENT_LIBS)
else
noinst_PROGRAMS += sbsync-agent
sbsync_agent_LDADD = sync/libsbsync-core.la lib/tool/libtools.la $(SYNC_LIBS) $(SSH2_LIBS)
endif
