# lib/egress
UNIT_LDADD_EGRESS = lib/egress/libegress.la lib/base/libbase.la $(CMOCKA_LIBS)
EGRESS_TESTS = \
	tests/unit/test-egress-read \
	tests/unit/test-netpolicy
check_PROGRAMS += $(EGRESS_TESTS)
TESTS += $(EGRESS_TESTS)
tests_unit_test_egress_read_SOURCES = tests/unit/test-egress-read.c
tests_unit_test_egress_read_LDADD = $(UNIT_LDADD_EGRESS)
tests_unit_test_netpolicy_SOURCES = tests/unit/test-netpolicy.c
tests_unit_test_netpolicy_LDADD = $(UNIT_LDADD_EGRESS)
