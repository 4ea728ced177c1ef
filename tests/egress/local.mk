# The egress proxy against a hostile session.
TESTS += %D%/egress.sh
dist_check_SCRIPTS += %D%/egress.sh
EXTRA_DIST += %D%/hostile.py %D%/lab.py
