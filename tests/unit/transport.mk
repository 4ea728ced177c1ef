check_PROGRAMS += \
	%D%/test-endpoint \
	%D%/test-transport

TESTS += \
	%D%/test-endpoint \
	%D%/test-transport

tests_unit_test_endpoint_SOURCES = %D%/test-endpoint.c
tests_unit_test_endpoint_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_transport_SOURCES = %D%/test-transport.c
tests_unit_test_transport_LDADD = $(UNIT_LDADD_SYNC)
