# Packages: slow, as root, with the network that apt has.
.PHONY: check-deb
check-deb:
	SB_TOP_SRCDIR='$(abs_top_srcdir)' SB_TOP_BUILDDIR='$(abs_top_builddir)' \
		$(SHELL) $(srcdir)/%D%/deb.sh
dist_check_SCRIPTS += %D%/deb.sh
TESTS += %D%/packages.sh
dist_check_SCRIPTS += %D%/packages.sh
.PHONY: check-packages
check-packages: all
	SB_PACKAGES_FULL=1 SB_TOP_SRCDIR='$(abs_top_srcdir)' \
		SB_TOP_BUILDDIR='$(abs_top_builddir)' $(SHELL) $(srcdir)/%D%/packages.sh
