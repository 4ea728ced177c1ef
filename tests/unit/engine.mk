# The engine between scan and commit: frames, what may be taken from a sandbox.
check_PROGRAMS += %D%/test-guard %D%/test-wire
TESTS += %D%/test-guard %D%/test-wire
tests_unit_test_guard_SOURCES = %D%/test-guard.c
tests_unit_test_guard_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_wire_SOURCES = %D%/test-wire.c
tests_unit_test_wire_LDADD = $(UNIT_LDADD_SYNC)
