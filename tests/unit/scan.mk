# Manifests, differences between them, and the scan that makes them.
UNIT_SCAN = \
	%D%/test-diff \
	%D%/test-manifest \
	%D%/test-scan \
	%D%/test-scan-hard

check_PROGRAMS += $(UNIT_SCAN)
TESTS += $(UNIT_SCAN)

tests_unit_test_diff_SOURCES = %D%/test-diff.c tests/lib/randtree.h
tests_unit_test_diff_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_manifest_SOURCES = %D%/test-manifest.c tests/lib/randtree.h tests/lib/tmpdir.h
tests_unit_test_manifest_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_scan_SOURCES = %D%/test-scan.c tests/lib/tree.h
tests_unit_test_scan_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_scan_hard_SOURCES = %D%/test-scan-hard.c tests/lib/tree.h
tests_unit_test_scan_hard_LDADD = $(UNIT_LDADD_SYNC)
