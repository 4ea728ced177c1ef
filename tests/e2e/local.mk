# Shell tests of whole properties, one file each: add the name to E2E. They source tests/lib/tap.sh.
E2E = \
	%D%/install.sh

TESTS += $(E2E)
dist_check_SCRIPTS += $(E2E)
EXTRA_DIST += tests/lib/tap.sh
