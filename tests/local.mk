# One program a module in tests/unit; each prints TAP.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
# No test may take longer than this many seconds.
TEST_TIMEOUT = 300
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/lib/run-test.sh $(TEST_TIMEOUT)
SH_LOG_COMPILER = $(LOG_COMPILER)
EXTRA_DIST += tests/lib/run-test.sh tests/lib/shim.sh tests/lib/tap.sh tests/lib/unit.h
EXTRA_DIST += tests/lib/s3.sh tests/lib/s3server.py
# Ends what a test leaves running.
check_PROGRAMS += tests/lib/reap
tests_lib_reap_SOURCES = tests/lib/reap.c
tests_lib_reap_LDADD =
# SB_CPPFLAGS and SB_CFLAGS are shell text: quotes in them are for the shell that uses them.
AM_TESTS_ENVIRONMENT = CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	SB_TOP_SRCDIR='$(abs_top_srcdir)'; export SB_TOP_SRCDIR; \
	SB_CPPFLAGS='$(subst ','\'',$(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS))'; \
	export SB_CPPFLAGS; \
	SB_CFLAGS='$(SB_CFLAGS)'; export SB_CFLAGS; \
	CC='$(CC)'; export CC; \
	SB_TOP_BUILDDIR='$(abs_top_builddir)'; export SB_TOP_BUILDDIR; \
	SB_BOX='$(abs_top_builddir)/sb-box'; export SB_BOX;

TESTS += tests/lint.sh tests/headers.sh tests/clang.sh
dist_check_SCRIPTS += tests/lint.sh tests/headers.sh tests/clang.sh
EXTRA_DIST += tests/lib/mutate.py tests/lib/lint.py tests/lib/lint_protocol.py

include tests/unit/local.mk
include tests/compat/local.mk
include tests/unit/scan.mk
include tests/unit/base.mk
include tests/unit/session.mk
include tests/unit/ignore.mk
include tests/bench/local.mk
include tests/unit/sandbox.mk
include tests/unit/host.mk
include tests/unit/storage.mk
include tests/unit/runtime.mk
include tests/unit/rpc.mk
include tests/unit/tool.mk
include tests/unit/egress.mk
include tests/egress/local.mk
include tests/fault/local.mk
include tests/hostile/local.mk
include tests/interop/local.mk
include tests/fuzz/local.mk
include tests/e2e/local.mk
include tests/control/local.mk
include tests/provider/local.mk
include tests/e2e/rpc.mk
include tests/bindings/local.mk
include tests/package/local.mk

# The same tests in a build of their own: gcc with ASan and UBSan, gcc with TSan, clang.
.PHONY: check-asan check-tsan check-clang coverage
check-asan check-tsan check-clang:
	$(MKDIR_P) $@-build
	cd $@-build && { case $@ in \
		check-asan) set -- --enable-sanitizers=address,undefined ;; \
		check-tsan) set -- --enable-sanitizers=thread ;; \
		check-clang) set -- CC=$(FUZZ_CC) ;; \
		esac && test -f Makefile || \
		$(abs_top_srcdir)/configure -q --enable-werror "$$@"; } && \
		$(MAKE) check TEST_TIMEOUT=900

# Whatever attacks, as root and as an ordinary user.
.PHONY: check-attacks
check-attacks:
	$(MAKE) check TESTS=
	SB_TOP_SRCDIR='$(abs_top_srcdir)' SB_TOP_BUILDDIR='$(abs_top_builddir)' \
		sh $(srcdir)/tests/attacks.sh
dist_check_SCRIPTS += tests/attacks.sh

if COVERAGE
coverage: check
	python3 $(top_srcdir)/tests/lib/coverage.py $(abs_top_srcdir) $(abs_top_builddir)
else
coverage:
	@echo "coverage needs a build with --enable-coverage" >&2; exit 1
endif
EXTRA_DIST += tests/lib/coverage.py

distclean-local:
	rm -rf fuzz-build check-asan-build check-tsan-build check-clang-build
