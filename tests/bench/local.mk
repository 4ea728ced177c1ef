# Benchmarks: nothing here runs in `make check`.
EXTRA_PROGRAMS += %D%/bench-ignore
tests_bench_bench_ignore_SOURCES = %D%/bench-ignore.c
tests_bench_bench_ignore_LDADD = sync/libsbsync-core.la $(SYNC_LIBS)
