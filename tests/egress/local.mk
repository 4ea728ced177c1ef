# The egress proxy against a hostile session.
EGRESS_E2E = %D%/egress.sh %D%/egress-user.sh
TESTS += $(EGRESS_E2E)
dist_check_SCRIPTS += $(EGRESS_E2E)
EXTRA_DIST += %D%/hostile.py %D%/lab.py
