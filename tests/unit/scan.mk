# Manifests, differences between them, and the scan that makes them.
UNIT_SCAN = \
	%D%/test-diff \
	%D%/test-manifest

check_PROGRAMS += $(UNIT_SCAN)
TESTS += $(UNIT_SCAN)
EXTRA_DIST += tests/lib/randtree.h

tests_unit_test_diff_SOURCES = %D%/test-diff.c
tests_unit_test_diff_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_manifest_SOURCES = %D%/test-manifest.c
tests_unit_test_manifest_LDADD = $(UNIT_LDADD_SYNC)
