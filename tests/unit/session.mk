# Sessions: the three-way rules against a model.
UNIT_SESSION = \
	%D%/test-merge \
	%D%/test-reconcile \
	%D%/test-session-model \
	%D%/test-session-store \
	%D%/test-step \
	%D%/test-recall

check_PROGRAMS += $(UNIT_SESSION)
TESTS += $(UNIT_SESSION)

tests_unit_test_reconcile_SOURCES = %D%/test-reconcile.c tests/lib/model.c tests/lib/model.h
tests_unit_test_reconcile_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_merge_SOURCES = %D%/test-merge.c tests/lib/model.c tests/lib/model.h
tests_unit_test_merge_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_session_model_SOURCES = %D%/test-session-model.c \
	tests/lib/model.c tests/lib/model.h tests/lib/sshd.c tests/lib/sshd.h tests/lib/tmpdir.h
tests_unit_test_session_model_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_recall_SOURCES = %D%/test-recall.c tests/lib/tmpdir.h
tests_unit_test_recall_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_session_store_SOURCES = %D%/test-session-store.c tests/lib/tmpdir.h
tests_unit_test_session_store_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_step_SOURCES = %D%/test-step.c tests/lib/tmpdir.h
tests_unit_test_step_LDADD = $(UNIT_LDADD_SYNC)
