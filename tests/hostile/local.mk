# Peers that speak the protocol and lie.
check_PROGRAMS += %D%/driver
%C%_driver_SOURCES = %D%/driver.c
%C%_driver_LDADD = sync/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS)

TESTS += %D%/canary.sh %D%/hostile.sh %D%/flood.sh
dist_check_SCRIPTS += %D%/canary.sh %D%/hostile.sh %D%/flood.sh
EXTRA_DIST += %D%/agent.py %D%/attach.py %D%/canary.py %D%/flood.py %D%/flooder.py \
	%D%/hostile.py %D%/sandbox.py %D%/tools.py %D%/wire.py %D%/world.py

# Thousands of random hostile trees, each synced and then asked by git.
CANARY_ROUNDS = 3000
CANARY_SEED = 1000
.PHONY: check-canary
check-canary:
	CANARY_ROUNDS=$(CANARY_ROUNDS) CANARY_SEED=$(CANARY_SEED) \
		$(MAKE) check TEST_TIMEOUT=14400 TESTS=tests/hostile/canary.sh
