# Sessions: the three-way rules against a model.
UNIT_SESSION = \
	%D%/test-reconcile

check_PROGRAMS += $(UNIT_SESSION)
TESTS += $(UNIT_SESSION)

tests_unit_test_reconcile_SOURCES = %D%/test-reconcile.c tests/lib/model.c tests/lib/model.h
tests_unit_test_reconcile_LDADD = $(UNIT_LDADD_SYNC)
