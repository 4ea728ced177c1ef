# The runtimes of the host: the same programs, compiled once for each.
RUNTIME_TESTS = \
	%D%/test-runtime-none \
	%D%/test-runtime-bwrap \
	%D%/test-runtime-gvisor \
	%D%/test-network-none \
	%D%/test-network-bwrap \
	%D%/test-network-gvisor \
	%D%/test-escape-bwrap \
	%D%/test-escape-gvisor \
	%D%/test-guest-none \
	%D%/test-guest-bwrap \
	%D%/test-guest-gvisor \
	%D%/test-tool
check_PROGRAMS += $(RUNTIME_TESTS) %D%/test-runtime-quota
TESTS += $(RUNTIME_TESTS)
tests_unit_test_runtime_none_SOURCES = %D%/test-runtime.c $(HOSTFIX)
tests_unit_test_runtime_none_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_RUNTIME='"none"'
tests_unit_test_runtime_none_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_runtime_bwrap_SOURCES = %D%/test-runtime.c $(HOSTFIX)
tests_unit_test_runtime_bwrap_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_RUNTIME='"bwrap"'
tests_unit_test_runtime_bwrap_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_runtime_gvisor_SOURCES = %D%/test-runtime.c $(HOSTFIX)
tests_unit_test_runtime_gvisor_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_RUNTIME='"gvisor"'
tests_unit_test_runtime_gvisor_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_guest_none_SOURCES = %D%/test-guest.c $(HOSTFIX)
tests_unit_test_guest_none_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_RUNTIME='"none"'
tests_unit_test_guest_none_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_guest_bwrap_SOURCES = %D%/test-guest.c $(HOSTFIX)
tests_unit_test_guest_bwrap_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_RUNTIME='"bwrap"'
tests_unit_test_guest_bwrap_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_guest_gvisor_SOURCES = %D%/test-guest.c $(HOSTFIX)
tests_unit_test_guest_gvisor_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_RUNTIME='"gvisor"'
tests_unit_test_guest_gvisor_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_tool_SOURCES = %D%/test-tool.c $(HOSTFIX)
tests_unit_test_tool_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_escape_bwrap_SOURCES = %D%/test-runtime-escape.c $(HOSTFIX)
tests_unit_test_escape_bwrap_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_RUNTIME='"bwrap"'
tests_unit_test_escape_bwrap_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_escape_gvisor_SOURCES = %D%/test-runtime-escape.c $(HOSTFIX)
tests_unit_test_escape_gvisor_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_RUNTIME='"gvisor"'
tests_unit_test_escape_gvisor_LDADD = $(UNIT_LDADD_SANDBOX)
# What runs in sb-files.
check_PROGRAMS += %D%/test-files %D%/test-filepool
TESTS += %D%/test-files %D%/test-filepool
tests_unit_test_files_SOURCES = %D%/test-files.c
tests_unit_test_files_LDADD = $(FILES_LDADD) $(CMOCKA_LIBS)
tests_unit_test_filepool_SOURCES = %D%/test-filepool.c
tests_unit_test_filepool_LDADD = $(UNIT_LDADD_SANDBOX)
# From tests/e2e/host-zfs.sh.
tests_unit_test_runtime_quota_SOURCES = %D%/test-runtime-quota.c $(HOSTFIX)
tests_unit_test_runtime_quota_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_network_none_SOURCES = %D%/test-runtime-network.c $(HOSTFIX)
tests_unit_test_network_none_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_RUNTIME='"none"'
tests_unit_test_network_none_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_network_bwrap_SOURCES = %D%/test-runtime-network.c $(HOSTFIX)
tests_unit_test_network_bwrap_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_RUNTIME='"bwrap"'
tests_unit_test_network_bwrap_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_network_gvisor_SOURCES = %D%/test-runtime-network.c $(HOSTFIX)
tests_unit_test_network_gvisor_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_RUNTIME='"gvisor"'
tests_unit_test_network_gvisor_LDADD = $(UNIT_LDADD_SANDBOX)
