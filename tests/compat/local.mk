# The APIs of others: scripts that tests/e2e/e2b.sh runs.
EXTRA_DIST += %D%/e2b.mjs %D%/e2b-hostile.py %D%/bench-e2b.mjs

# Both pinned versions of the vendor's package, every runtime and storage that works here.
.PHONY: check-compat
check-compat:
	SB_COMPAT_FULL=1 $(MAKE) check TEST_TIMEOUT=3600 TESTS=tests/e2e/e2b.sh

# Numbers, no verdicts.
.PHONY: bench-compat
bench-compat: all
	SB_COMPAT_BENCH=1 \
		SB_TOP_SRCDIR='$(abs_top_srcdir)' SB_TOP_BUILDDIR='$(abs_top_builddir)' \
		SB_BOX='$(abs_top_builddir)/sb-box' $(SHELL) $(srcdir)/tests/e2e/e2b.sh
