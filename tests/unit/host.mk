# The sandbox host: on local-disk here, on ZFS from tests/e2e/host-zfs.sh.
HOST_TESTS = \
	%D%/test-host-exec \
	%D%/test-host-names \
	%D%/test-host-guard \
	%D%/test-host-terms \
	%D%/test-host-port \
	%D%/test-host-races \
	%D%/test-host-service \
	%D%/test-proctree
check_PROGRAMS += $(HOST_TESTS) %D%/test-box-swap %D%/test-host-snapshots \
	%D%/test-host-timeline %D%/test-host-writers
TESTS += $(HOST_TESTS)
HOSTFIX = tests/lib/hostfix.c tests/lib/hostfix.h
tests_unit_test_proctree_SOURCES = %D%/test-proctree.c
tests_unit_test_proctree_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_host_names_SOURCES = %D%/test-host-names.c
tests_unit_test_host_names_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_host_terms_SOURCES = %D%/test-host-terms.c $(HOSTFIX)
tests_unit_test_host_terms_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_host_guard_SOURCES = %D%/test-host-guard.c $(HOSTFIX)
tests_unit_test_host_guard_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_host_port_SOURCES = %D%/test-host-port.c $(HOSTFIX)
tests_unit_test_host_port_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_host_races_SOURCES = %D%/test-host-races.c $(HOSTFIX)
tests_unit_test_host_races_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_host_service_SOURCES = %D%/test-host-service.c $(HOSTFIX)
tests_unit_test_host_service_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_host_snapshots_SOURCES = %D%/test-host-snapshots.c $(HOSTFIX)
tests_unit_test_host_snapshots_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_host_exec_SOURCES = %D%/test-host-exec.c $(HOSTFIX)
tests_unit_test_host_exec_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_box_swap_SOURCES = %D%/test-box-swap.c $(HOSTFIX)
tests_unit_test_box_swap_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_host_timeline_SOURCES = %D%/test-host-timeline.c $(HOSTFIX)
tests_unit_test_host_timeline_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_host_writers_SOURCES = %D%/test-host-writers.c $(HOSTFIX)
tests_unit_test_host_writers_LDADD = $(UNIT_LDADD_SANDBOX) -lsqlite3

# Cold storage: on storages with snapshots, from tests/e2e/host-cold*.sh.
check_PROGRAMS += %D%/test-host-cold
tests_unit_test_host_cold_SOURCES = %D%/test-host-cold.c $(HOSTFIX)
tests_unit_test_host_cold_LDADD = $(UNIT_LDADD_SANDBOX)
