# The contract's words and state, profiles, the life of a sandbox.
SANDBOX_TESTS = \
	%D%/test-box \
	%D%/test-profile \
	%D%/test-sandbox \
	%D%/test-sshbox \
	%D%/test-state
check_PROGRAMS += $(SANDBOX_TESTS)
TESTS += $(SANDBOX_TESTS)
tests_unit_test_profile_SOURCES = %D%/test-profile.c
tests_unit_test_profile_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_sandbox_SOURCES = %D%/test-sandbox.c
tests_unit_test_sandbox_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_sshbox_SOURCES = %D%/test-sshbox.c
tests_unit_test_sshbox_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_state_SOURCES = %D%/test-state.c
tests_unit_test_state_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_box_SOURCES = %D%/test-box.c
tests_unit_test_box_LDADD = $(UNIT_LDADD_SANDBOX)
