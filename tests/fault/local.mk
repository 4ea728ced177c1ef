# Faults injected into syncs: kill -9 and failing system calls at the n-th call that changes something, interrupts, races.
# `make check` tries as many as fit into half a minute, others each hour; `make fault` tries them all.
check_LTLIBRARIES += %D%/shim.la
%C%_shim_la_SOURCES = %D%/shim.c
%C%_shim_la_CFLAGS = $(SB_CFLAGS) -fvisibility=default
%C%_shim_la_LDFLAGS = -module -avoid-version -shared -rpath $(abs_builddir)
%C%_shim_la_LIBADD = -ldl

TESTS += %D%/fault.sh
dist_check_SCRIPTS += %D%/fault.sh
EXTRA_DIST += %D%/sweep.py

.PHONY: fault
fault: sbsync %D%/shim.la
	python3 $(srcdir)/%D%/sweep.py -v ./sbsync %D%/.libs/shim.so
