# The egress proxy against a hostile session.
EGRESS_E2E = %D%/egress.sh %D%/egress-user.sh
TESTS += $(EGRESS_E2E)
dist_check_SCRIPTS += $(EGRESS_E2E)
EXTRA_DIST += %D%/bench.py %D%/hostile.py %D%/lab.py

# What the way through the proxy costs.
.PHONY: bench-egress
bench-egress: sb-egress$(EXEEXT)
	dir=$$(mktemp -d) && { unshare -n python3 -B $(srcdir)/tests/egress/bench.py \
		'$(abs_top_builddir)/sb-egress' "$$dir"; rm -rf "$$dir"; }
