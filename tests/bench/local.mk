# Benchmarks: nothing here runs in `make check`; `make bench` runs each, or BENCHES=tests/bench/bench-NAME.
BENCHES = \
	%D%/bench-ignore
EXTRA_PROGRAMS += $(BENCHES)

.PHONY: bench
bench: $(BENCHES)
	@for b in $(BENCHES); do echo "== $$b"; ./$$b || exit 1; done

tests_bench_bench_ignore_SOURCES = %D%/bench-ignore.c
tests_bench_bench_ignore_LDADD = sync/libsbsync-core.la $(SYNC_LIBS)

EXTRA_PROGRAMS += %D%/bench-scan
tests_bench_bench_scan_SOURCES = %D%/bench-scan.c
tests_bench_bench_scan_LDADD = sync/libsbsync-core.la $(SYNC_LIBS)
