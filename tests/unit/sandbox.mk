# The contract's words and state, profiles, the life of a sandbox.
SESSION_TESTS = \
	%D%/test-profile \
	%D%/test-sandbox \
	%D%/test-state
check_PROGRAMS += $(SESSION_TESTS)
TESTS += $(SESSION_TESTS)
tests_unit_test_profile_SOURCES = %D%/test-profile.c
tests_unit_test_profile_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_sandbox_SOURCES = %D%/test-sandbox.c
tests_unit_test_sandbox_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_state_SOURCES = %D%/test-state.c
tests_unit_test_state_LDADD = $(UNIT_LDADD_SANDBOX)
