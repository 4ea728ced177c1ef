# One program a module in tests/unit; each prints TAP.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
# No test may take longer than this many seconds.
TEST_TIMEOUT = 300
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/lib/run-test.sh $(TEST_TIMEOUT)
SH_LOG_COMPILER = $(LOG_COMPILER)
EXTRA_DIST += tests/lib/run-test.sh tests/lib/tap.sh tests/lib/unit.h
AM_TESTS_ENVIRONMENT = CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	SB_TOP_SRCDIR='$(abs_top_srcdir)'; export SB_TOP_SRCDIR; \
	SB_CPPFLAGS='$(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS)'; export SB_CPPFLAGS; \
	CC='$(CC)'; export CC; \
	SB_TOP_BUILDDIR='$(abs_top_builddir)'; export SB_TOP_BUILDDIR;

TESTS += tests/lint.sh tests/headers.sh
dist_check_SCRIPTS += tests/lint.sh tests/headers.sh
EXTRA_DIST += tests/lib/lint.py

include tests/unit/local.mk
include tests/unit/base.mk
include tests/fuzz/local.mk
include tests/e2e/local.mk
