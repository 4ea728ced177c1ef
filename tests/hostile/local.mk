# Peers that speak the protocol and lie.
check_PROGRAMS += %D%/driver
%C%_driver_SOURCES = %D%/driver.c
%C%_driver_LDADD = sync/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS)

TESTS += %D%/hostile.sh %D%/flood.sh
dist_check_SCRIPTS += %D%/hostile.sh %D%/flood.sh
EXTRA_DIST += %D%/agent.py %D%/attach.py %D%/flood.py %D%/flooder.py %D%/hostile.py \
	%D%/sandbox.py %D%/tools.py %D%/wire.py
