# Tests of lib/rpc and lib/compat.
UNIT_RPC = \
	%D%/test-daytona \
	%D%/test-env \
	%D%/test-env-remote \
	%D%/test-rpc-auth \
	%D%/test-rpc-codec \
	%D%/test-rpc-crowd \
	%D%/test-rpc-daemon \
	%D%/test-rpc-http \
	%D%/test-rpc-idem \
	%D%/test-rpc-server \
	%D%/test-rpc-strict \
	%D%/test-rpc-tenant

check_PROGRAMS += $(UNIT_RPC)
TESTS += $(UNIT_RPC)

tests_unit_test_daytona_SOURCES = %D%/test-daytona.c
tests_unit_test_daytona_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_rpc_auth_SOURCES = %D%/test-rpc-auth.c
tests_unit_test_rpc_auth_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_rpc_codec_SOURCES = %D%/test-rpc-codec.c
tests_unit_test_rpc_codec_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_rpc_daemon_SOURCES = %D%/test-rpc-daemon.c $(HOSTFIX)
tests_unit_test_rpc_daemon_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_rpc_http_SOURCES = %D%/test-rpc-http.c tests/lib/tmpdir.h
tests_unit_test_rpc_http_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_rpc_server_SOURCES = %D%/test-rpc-server.c %D%/rpc-toy.h tests/lib/tmpdir.h
tests_unit_test_rpc_server_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_rpc_strict_SOURCES = %D%/test-rpc-strict.c %D%/rpc-toy.h tests/lib/tmpdir.h
tests_unit_test_rpc_strict_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_rpc_tenant_SOURCES = %D%/test-rpc-tenant.c $(HOSTFIX)
tests_unit_test_rpc_tenant_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_rpc_crowd_SOURCES = %D%/test-rpc-crowd.c %D%/rpc-toy.h tests/lib/tmpdir.h
tests_unit_test_rpc_crowd_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_rpc_idem_SOURCES = %D%/test-rpc-idem.c
tests_unit_test_rpc_idem_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_env_SOURCES = %D%/test-env.c $(HOSTFIX)
tests_unit_test_env_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_env_remote_SOURCES = %D%/test-env.c $(HOSTFIX)
tests_unit_test_env_remote_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_REMOTE=1
tests_unit_test_env_remote_LDADD = $(UNIT_LDADD_SANDBOX)
