# The agent alone, without shared libraries: sbsync sends it to machines that have no sbsync. A
# build that cannot have it (sanitizers) makes one with shared libraries for the tests, which stay
# on this machine; it is not installed.
sbsync_agent_SOURCES = %D%/main.c
if STATIC_AGENT
pkglibexec_PROGRAMS += sbsync-agent
sbsync_agent_LDFLAGS = $(AM_LDFLAGS) -all-static -Wl,--gc-sections -s
sbsync_agent_LDADD = sync/libsbsync-core.la lib/tool/libtools.la lib/base/libbase.la \
	$(STATIC_AGENT_LIBS)
else
noinst_PROGRAMS += sbsync-agent
sbsync_agent_LDADD = sync/libsbsync-core.la lib/tool/libtools.la lib/base/libbase.la \
	$(SYNC_LIBS) $(SSH2_LIBS)
endif
