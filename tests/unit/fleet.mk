# Tests of lib/fleet.
UNIT_FLEET = \
	%D%/test-etcd \
	%D%/test-fleet \
	%D%/test-fleet-view

check_PROGRAMS += $(UNIT_FLEET)
TESTS += $(UNIT_FLEET)

ETCDFIX = tests/lib/etcd.c tests/lib/etcd.h
tests_unit_test_etcd_SOURCES = %D%/test-etcd.c $(ETCDFIX)
tests_unit_test_etcd_LDADD = $(UNIT_LDADD_SANDBOX)
EXTRA_DIST += tests/lib/etcd.sh
tests_unit_test_fleet_SOURCES = %D%/test-fleet.c
tests_unit_test_fleet_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_fleet_view_SOURCES = %D%/test-fleet-view.c $(ETCDFIX)
tests_unit_test_fleet_view_LDADD = $(UNIT_LDADD_SANDBOX)
