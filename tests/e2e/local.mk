E2E = \
	%D%/install.sh \
	%D%/quickstart.sh

TESTS += $(E2E)
dist_check_SCRIPTS += $(E2E)
