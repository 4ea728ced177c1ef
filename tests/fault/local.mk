# Faults injected into syncs: kill -9 and failing system calls at the n-th call that changes
# something, interrupts, races. `make check` tries as many as fit into half a minute, others each
# hour; `make fault` tries them all.
check_LTLIBRARIES += %D%/shim.la
%C%_shim_la_SOURCES = %D%/shim.c
%C%_shim_la_CFLAGS = $(SB_CFLAGS) -fvisibility=default
%C%_shim_la_LDFLAGS = -module -avoid-version -shared -rpath $(abs_builddir)
%C%_shim_la_LIBADD = -ldl

TESTS += %D%/fault.sh
dist_check_SCRIPTS += %D%/fault.sh
EXTRA_DIST += %D%/sweep.py %D%/races.py

.PHONY: fault
fault: sbsync %D%/shim.la
	python3 $(srcdir)/%D%/sweep.py -v ./sbsync %D%/.libs/shim.so
	python3 $(srcdir)/%D%/races.py --rounds 100 ./sbsync %D%/.libs/shim.so

# People at work on both sides of a session, run by tests/e2e/session-live.sh; here many steps, and
# thousands of trees with hard links through the real engine, on this machine and behind SSH.
EXTRA_DIST += %D%/live.py %D%/livewriter.py
MODEL_STEPS = 20000
MODEL_SSH_STEPS = 20000
MODEL_SEED = 1
MODEL_TRIPLES = 3000
MODEL_FAR_TRIPLES = 300
.PHONY: check-model
check-model:
	LIVE_STEPS=$(MODEL_STEPS) LIVE_SSH_STEPS=$(MODEL_SSH_STEPS) LIVE_SEED=$(MODEL_SEED) \
		SESSION_ROUNDS=$(MODEL_TRIPLES) SESSION_SSH_ROUNDS=$(MODEL_TRIPLES) \
		SESSION_FAR_ROUNDS=$(MODEL_FAR_TRIPLES) \
		$(MAKE) check TEST_TIMEOUT=28800 \
		TESTS='tests/unit/test-session-model tests/e2e/session-live.sh'

# Syncs on a disk that loses its power.
if HAVE_FUSE3
check_PROGRAMS += %D%/crashdisk
endif
EXTRA_PROGRAMS += %D%/crashdisk
%C%_crashdisk_SOURCES = %D%/crashdisk.c
%C%_crashdisk_CPPFLAGS = $(AM_CPPFLAGS) $(FUSE3_CFLAGS)
%C%_crashdisk_LDADD = $(FUSE3_LIBS)
TESTS += %D%/power.sh
dist_check_SCRIPTS += %D%/power.sh
EXTRA_DIST += %D%/power.py
POWER_CUTS = 30
POWER_SEED = 1
.PHONY: check-power
check-power:
	SB_POWER_CUTS=$(POWER_CUTS) SB_POWER_SEED=$(POWER_SEED) \
		SB_POWER_FS='ext4 ext4-writeback xfs' \
		$(MAKE) check TEST_TIMEOUT=14400 TESTS=tests/fault/power.sh

# sbhostd under kill -9, run by tests/e2e/host-crash.sh; here two hundred times on each storage,
# with fifty sessions.
EXTRA_DIST += %D%/hostcrash.py %D%/hostclient.py
CRASHES = 200
.PHONY: fault-host
fault-host: all
	SB_TOP_SRCDIR='$(abs_top_srcdir)' SB_TOP_BUILDDIR='$(abs_top_builddir)' SB_CRASH_SLOTS=13 \
		SB_CRASH_SEED=$${SB_CRASH_SEED:-$$$$} \
		SB_CRASH_LOCAL=$(CRASHES) SB_CRASH_ZFS=$(CRASHES) \
		$(SHELL) $(top_srcdir)/tests/e2e/host-crash.sh
# The same with sandboxes at work: containers, helpers, ports and exit codes.
EXTRA_DIST += %D%/boxkill.py
BOXKILLS = 100
.PHONY: fault-boxes
fault-boxes: all
	python3 $(srcdir)/%D%/boxkill.py ./sbhostd bwrap $(BOXKILLS)
	python3 $(srcdir)/%D%/boxkill.py ./sbhostd gvisor $(BOXKILLS)

# `sbctl run` over SSH under kill -9, run by tests/e2e/sbctl-kill.sh; here 200 times.
EXTRA_DIST += %D%/runkill.py
.PHONY: check-kill
check-kill:
	SB_KILL_ROUNDS=200 SB_KILL_SEED=$${SB_KILL_SEED:-$$$$} \
		$(MAKE) check TEST_TIMEOUT=3600 TESTS=tests/e2e/sbctl-kill.sh

# The same with containers of Podman.
.PHONY: check-kill-docker
check-kill-docker:
	SB_KILL_ROUNDS=200 SB_KILL_SEED=$${SB_KILL_SEED:-$$$$} \
		$(MAKE) check TEST_TIMEOUT=7200 TESTS=tests/e2e/docker-kill.sh

# The same with sandboxes of a host with the E2B API.
.PHONY: check-kill-e2b
check-kill-e2b:
	SB_KILL_ROUNDS=100 SB_KILL_SEED=$${SB_KILL_SEED:-$$$$} \
		$(MAKE) check TEST_TIMEOUT=7200 TESTS=tests/e2e/e2b-kill.sh

# Storages under kill -9 at every call and under power loss, run by tests/e2e/storage-crash.sh; here
# every call and 500 moments, and ten thousand operations of each storage against a model.
check_PROGRAMS += %D%/storage-crash
%C%_storage_crash_SOURCES = %D%/storage-crash.c
%C%_storage_crash_LDADD = $(UNIT_LDADD_SANDBOX)
EXTRA_DIST += %D%/storage-kill.py
STORAGE_HOSTS = tests/e2e/host-btrfs.sh tests/e2e/host-overlay.sh tests/e2e/host-zfs.sh
STORAGE_MODELS = tests/unit/test-storage-model-btrfs tests/unit/test-storage-model-ext4 \
	tests/unit/test-storage-model-xfs
.PHONY: fault-storage
fault-storage:
	SB_STORAGE_KILLS=0 SB_STORAGE_IMAGES=500 STORAGE_OPS=10000 \
		$(MAKE) check TEST_TIMEOUT=3600 TESTS='tests/e2e/storage-crash.sh $(STORAGE_MODELS)'
	WRITERS_SNAPS=200 $(MAKE) check TEST_TIMEOUT=3600 TESTS='$(STORAGE_HOSTS)'
