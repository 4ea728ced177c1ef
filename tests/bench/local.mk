# Benchmarks: `make check` only tests that they work (tests/e2e/bench.sh). `make bench` compares
# sbsync with its rivals (tests/bench/run, see doc/BENCHMARKS.md), `make bench-quick` in a few
# minutes, `make bench-local` on pairs of local directories; BENCH_FLAGS adds options.
# `make bench-parts` measures single parts of the engine; with BENCHES=tests/bench/bench-NAME one.
BENCHES = \
	%D%/bench-codec \
	%D%/bench-ignore
BENCH_HELPERS = \
	%D%/floor \
	%D%/meter \
	%D%/slowlink \
	%D%/turn
EXTRA_PROGRAMS += $(BENCHES) %D%/bench-scan
check_PROGRAMS += $(BENCH_HELPERS)
EXTRA_DIST += %D%/run %D%/cases.py %D%/floors.py %D%/place.py %D%/report.py %D%/tools.py \
	%D%/workload.py

# How the scripts here are started.
BENCH_SH = SB_TOP_SRCDIR='$(abs_top_srcdir)' SB_TOP_BUILDDIR='$(abs_top_builddir)' $(SHELL)
BENCH_FLAGS =
BENCH_RUN = $(top_srcdir)/tests/bench/run --builddir $(abs_top_builddir)

.PHONY: bench bench-quick bench-local bench-helpers bench-parts
bench: all $(BENCH_HELPERS)
	$(BENCH_RUN) $(BENCH_FLAGS)
bench-quick: all $(BENCH_HELPERS)
	$(BENCH_RUN) --quick $(BENCH_FLAGS)
bench-local: all $(BENCH_HELPERS)
	$(BENCH_RUN) --local $(BENCH_FLAGS)
bench-helpers: $(BENCH_HELPERS)
bench-parts: $(BENCHES)
	@for b in $(BENCHES); do echo "== $$b"; ./$$b || exit 1; done

tests_bench_bench_codec_SOURCES = %D%/bench-codec.c
tests_bench_bench_codec_LDADD = sync/libsbsync-core.la $(SYNC_LIBS)
tests_bench_bench_ignore_SOURCES = %D%/bench-ignore.c
tests_bench_bench_ignore_LDADD = sync/libsbsync-core.la $(SYNC_LIBS)
tests_bench_bench_scan_SOURCES = %D%/bench-scan.c
tests_bench_bench_scan_LDADD = sync/libsbsync-core.la $(SYNC_LIBS)
tests_bench_floor_SOURCES = %D%/floor.c
tests_bench_floor_LDADD = $(XXHASH_LIBS) $(ZSTD_LIBS)
tests_bench_meter_SOURCES = %D%/meter.c
tests_bench_slowlink_SOURCES = %D%/slowlink.c
tests_bench_turn_SOURCES = %D%/turn.c
tests_bench_turn_LDADD = sync/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS)

# What the round trips of SSH cost: `make bench-roundtrips`.
EXTRA_PROGRAMS += %D%/bench-roundtrips
EXTRA_DIST += %D%/roundtrips.sh
tests_bench_bench_roundtrips_SOURCES = %D%/bench-roundtrips.c
tests_bench_bench_roundtrips_LDADD = sync/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS)
.PHONY: bench-roundtrips
bench-roundtrips: all %D%/bench-roundtrips %D%/slowlink
	@$(BENCH_SH) $(top_srcdir)/tests/bench/roundtrips.sh

# What its tools cost, beside the programs they stand for: `make bench-tools`.
EXTRA_PROGRAMS += %D%/bench-tools
tests_bench_bench_tools_SOURCES = %D%/bench-tools.c
tests_bench_bench_tools_LDADD = lib/libsandbox-core.la sync/libsbsync-core.la \
	$(SANDBOX_LIBS) $(SYNC_LIBS) $(SSH2_LIBS)
.PHONY: bench-tools
bench-tools: all %D%/bench-tools %D%/bench-rpc
	$(BENCH_SH) $(srcdir)/%D%/tools-rpc.sh
	SB_BOX=$(abs_top_builddir)/sb-box \
		%D%/bench-tools $(abs_top_builddir)/tests/bench/tools-scratch

# What a sandbox host costs: `make bench-host`.
EXTRA_PROGRAMS += %D%/bench-rpc
EXTRA_DIST += %D%/host.py %D%/host.sh %D%/tools-rpc.sh
EXTRA_DIST += %D%/snapshots.py %D%/snapshots.sh
tests_bench_bench_rpc_SOURCES = %D%/bench-rpc.c
.PHONY: bench-host
bench-host: all %D%/bench-rpc
	@for s in local-disk zfs; do \
		$(BENCH_SH) $(top_srcdir)/tests/bench/host.sh $$s || exit 1; \
	done
	@for s in overlay btrfs zfs; do \
		$(BENCH_SH) $(top_srcdir)/tests/bench/snapshots.sh $$s || exit 1; \
	done

# Round trips through launchers: `make bench-launch`.
EXTRA_PROGRAMS += %D%/bench-launch
EXTRA_DIST += %D%/launch.sh
tests_bench_bench_launch_SOURCES = %D%/bench-launch.c
tests_bench_bench_launch_LDADD = lib/libsandbox-core.la sync/libsbsync-core.la \
	$(SANDBOX_LIBS) $(SYNC_LIBS) $(SSH2_LIBS)
.PHONY: bench-launch
bench-launch: all %D%/bench-launch
	@$(BENCH_SH) $(top_srcdir)/tests/bench/launch.sh

# Containers of Podman: `make bench-docker`.
EXTRA_PROGRAMS += %D%/bench-docker
EXTRA_DIST += %D%/docker.sh
tests_bench_bench_docker_SOURCES = %D%/bench-docker.c
tests_bench_bench_docker_LDADD = lib/libsandbox-core.la sync/libsbsync-core.la \
	$(SANDBOX_LIBS) $(SYNC_LIBS) $(SSH2_LIBS)
.PHONY: bench-docker
bench-docker: all %D%/bench-docker
	@$(BENCH_SH) $(top_srcdir)/tests/bench/docker.sh

# Backend e2b against backend ssh.
EXTRA_DIST += %D%/e2b.sh
.PHONY: bench-e2b
bench-e2b: all
	$(BENCH_SH) $(srcdir)/tests/bench/e2b.sh
