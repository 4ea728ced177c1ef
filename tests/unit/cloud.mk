# Tests of lib/cloud.
UNIT_CLOUD = \
	%D%/test-rest \
	%D%/test-rest-stream

check_PROGRAMS += $(UNIT_CLOUD)
TESTS += $(UNIT_CLOUD)

HTTPFIX = tests/lib/httpfix.c tests/lib/httpfix.h
tests_unit_test_rest_SOURCES = %D%/test-rest.c %D%/rest-toy.h $(HTTPFIX) tests/lib/tmpdir.h
tests_unit_test_rest_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_rest_stream_SOURCES = %D%/test-rest-stream.c %D%/rest-toy.h $(HTTPFIX)
tests_unit_test_rest_stream_LDADD = $(UNIT_LDADD_SANDBOX)

# Of lib/cloud/aws.
check_PROGRAMS += %D%/test-sigv4 %D%/test-awschain
TESTS += %D%/test-sigv4 %D%/test-awschain
tests_unit_test_sigv4_SOURCES = %D%/test-sigv4.c
tests_unit_test_sigv4_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_awschain_SOURCES = %D%/test-awschain.c $(HTTPFIX) tests/lib/tmpdir.h
tests_unit_test_awschain_LDADD = $(UNIT_LDADD_SANDBOX)
