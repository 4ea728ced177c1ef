# The contract's words and state, profiles, the life of a sandbox.
SANDBOX_TESTS = \
	%D%/test-control \
	%D%/test-instance \
	%D%/test-docker \
	%D%/test-docker-agent \
	%D%/test-place \
	%D%/test-profile \
	%D%/test-sandbox \
	%D%/test-sandbox-hooks \
	%D%/test-sandbox-profile \
	%D%/test-sandbox-recover \
	%D%/test-sshlink \
	%D%/test-state \
	%D%/test-trust
check_PROGRAMS += $(SANDBOX_TESTS)
TESTS += $(SANDBOX_TESTS)
tests_unit_test_control_SOURCES = %D%/test-control.c
tests_unit_test_control_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_instance_SOURCES = %D%/test-instance.c
tests_unit_test_instance_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_profile_SOURCES = %D%/test-profile.c
tests_unit_test_profile_LDADD = $(UNIT_LDADD_SANDBOX)
LIFEFIX = tests/lib/lifefix.c tests/lib/lifefix.h
tests_unit_test_sandbox_SOURCES = %D%/test-sandbox.c $(LIFEFIX)
tests_unit_test_sandbox_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_sandbox_hooks_SOURCES = %D%/test-sandbox-hooks.c $(LIFEFIX)
tests_unit_test_sandbox_hooks_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_sandbox_recover_SOURCES = %D%/test-sandbox-recover.c $(LIFEFIX)
tests_unit_test_sandbox_recover_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_sandbox_profile_SOURCES = %D%/test-sandbox-profile.c
tests_unit_test_sandbox_profile_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_sshlink_SOURCES = %D%/test-sshlink.c
tests_unit_test_sshlink_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_state_SOURCES = %D%/test-state.c
tests_unit_test_state_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_trust_SOURCES = %D%/test-trust.c
tests_unit_test_trust_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_place_SOURCES = %D%/test-place.c
tests_unit_test_place_LDADD = $(UNIT_LDADD_SANDBOX)
# Stands for sbx and docker sandbox.
check_PROGRAMS += tests/lib/dockerstub
tests_lib_dockerstub_SOURCES = tests/lib/dockerstub.c
tests_lib_dockerstub_LDADD = $(SANDBOX_LIBS)
tests_unit_test_docker_agent_SOURCES = %D%/test-docker-agent.c
tests_unit_test_docker_agent_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_docker_SOURCES = %D%/test-docker.c
tests_unit_test_docker_LDADD = $(UNIT_LDADD_SANDBOX)
