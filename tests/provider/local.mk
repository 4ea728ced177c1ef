# lib/base is in both libraries: its second copy is left out of the module.
# The conformance suite against the providers, and against one that is broken in each of its points.
check_LTLIBRARIES += %D%/fake.la
tests_provider_fake_la_SOURCES = %D%/fake.c %D%/fake-parts.c %D%/fake.h
tests_provider_fake_la_LIBADD = lib/libsandbox-core.la sync/libsbsync-core.la \
	$(SANDBOX_LIBS) $(SYNC_LIBS) $(SSH2_LIBS)
tests_provider_fake_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-Wl,--allow-multiple-definition -rpath $(abs_builddir)
PROVIDER_TESTS = \
	%D%/docker.sh \
	%D%/docker-daemon.sh \
	%D%/docker-rootless.sh \
	%D%/docker-sandboxes.sh \
	%D%/docker-work.sh \
	%D%/e2b.sh \
	%D%/e2b-faults.sh \
	%D%/faults.sh \
	%D%/host.sh \
	%D%/host-forms.sh \
	%D%/local.sh \
	%D%/ssh.sh
TESTS += $(PROVIDER_TESTS)
dist_check_SCRIPTS += $(PROVIDER_TESTS)
EXTRA_DIST += %D%/e2bproxy.py tests/lib/freeze.sh
EXTRA_DIST += tests/lib/dockerd.sh tests/lib/e2bhost.sh tests/lib/image.sh tests/lib/podman.sh \
	tests/lib/rootless.sh tests/lib/runlife.sh
