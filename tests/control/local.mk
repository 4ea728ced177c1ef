# The conformance suite against the controls, and against one that is broken in each of its points;
# lib/base is in both libraries: its second copy is left out of the module.
check_LTLIBRARIES += %D%/fake.la
tests_control_fake_la_SOURCES = %D%/fake.c
tests_control_fake_la_LIBADD = lib/libsandbox-core.la sync/libsbsync-core.la \
	$(SANDBOX_LIBS) $(SYNC_LIBS) $(SSH2_LIBS)
tests_control_fake_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-Wl,--allow-multiple-definition -rpath $(abs_builddir)
CONTROL_TESTS = \
	%D%/faults.sh \
	%D%/instance.sh \
	%D%/node.sh \
	%D%/verbs.sh
TESTS += $(CONTROL_TESTS)
dist_check_SCRIPTS += $(CONTROL_TESTS)
