check_PROGRAMS += \
	%D%/test-agentless \
	%D%/test-conn \
	%D%/test-deploy \
	%D%/test-doctor \
	%D%/test-endpoint \
	%D%/test-ssh \
	%D%/test-ssh-auth \
	%D%/test-ssh-bad \
	%D%/test-ssh-parts \
	%D%/test-transport

TESTS += \
	%D%/test-agentless \
	%D%/test-conn \
	%D%/test-deploy \
	%D%/test-doctor \
	%D%/test-endpoint \
	%D%/test-ssh \
	%D%/test-ssh-auth \
	%D%/test-ssh-bad \
	%D%/test-ssh-parts \
	%D%/test-transport

tests_unit_test_endpoint_SOURCES = %D%/test-endpoint.c
tests_unit_test_endpoint_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_agentless_SOURCES = %D%/test-agentless.c
tests_unit_test_agentless_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_conn_SOURCES = %D%/test-conn.c tests/lib/sshd.c tests/lib/sshd.h
tests_unit_test_conn_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_deploy_SOURCES = %D%/test-deploy.c \
	tests/lib/sshd.c tests/lib/sshd.h tests/lib/relay.c tests/lib/relay.h
tests_unit_test_deploy_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_doctor_SOURCES = %D%/test-doctor.c
tests_unit_test_doctor_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_ssh_auth_SOURCES = %D%/test-ssh-auth.c tests/lib/sshd.c tests/lib/sshd.h
tests_unit_test_ssh_auth_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_ssh_bad_SOURCES = %D%/test-ssh-bad.c \
	tests/lib/sshd.c tests/lib/sshd.h tests/lib/relay.c tests/lib/relay.h
tests_unit_test_ssh_bad_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_ssh_parts_SOURCES = %D%/test-ssh-parts.c
tests_unit_test_ssh_parts_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_ssh_SOURCES = %D%/test-ssh.c tests/lib/sshd.c tests/lib/sshd.h
tests_unit_test_ssh_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_transport_SOURCES = %D%/test-transport.c
tests_unit_test_transport_LDADD = $(UNIT_LDADD_SYNC)

check_PROGRAMS += tests/lib/sshcat
tests_lib_sshcat_SOURCES = tests/lib/sshcat.c
tests_lib_sshcat_LDADD = sync/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS)

check_PROGRAMS += tests/lib/relay
tests_lib_relay_SOURCES = tests/lib/relay-main.c tests/lib/relay.c tests/lib/relay.h

EXTRA_DIST += tests/lib/sshd.sh
