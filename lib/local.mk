# libsandbox: the sandbox lifecycle around libsbsync.
# The core is a convenience library for the tests.
noinst_LTLIBRARIES += %D%/libsandbox-core.la
lib_libsandbox_core_la_SOURCES = \
	%D%/version.c

lib_libsandbox_core_la_LIBADD = lib/base/libbase.la lib/tool/libtools.la lib/egress/libegress.la

lib_LTLIBRARIES += libsandbox.la
libsandbox_la_SOURCES =
libsandbox_la_LIBADD = %D%/libsandbox-core.la libsbsync.la $(SANDBOX_LIBS)
libsandbox_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined
pkgconfig_DATA += %D%/libsandbox.pc

sbinclude_HEADERS += \
	%D%/sb/cloud.h \
	%D%/sb/cold.h \
	%D%/sb/conform.h \
	%D%/sb/control-check.h \
	%D%/sb/control.h \
	%D%/sb/daytona.h \
	%D%/sb/docker.h \
	%D%/sb/e2b.h \
	%D%/sb/env.h \
	%D%/sb/host-cold.h \
	%D%/sb/host-exec.h \
	%D%/sb/host-snapshot.h \
	%D%/sb/host.h \
	%D%/sb/instance.h \
	%D%/sb/launcher.h \
	%D%/sb/mcp.h \
	%D%/sb/profile.h \
	%D%/sb/provider.h \
	%D%/sb/registry.h \
	%D%/sb/rpc-daemon.h \
	%D%/sb/rpc.h \
	%D%/sb/sandbox.h \
	%D%/sb/session.h \
	%D%/sb/sshgate.h \
	%D%/sb/state.h \
	%D%/sb/toolhost.h \
	%D%/sb/trust.h \
	%D%/sb/version.h

EXTRA_DIST += %D%/README.md %D%/rpc/README.md

include lib/cloud/e2b/local.mk
include lib/cloud/http/local.mk
include lib/cloud/aws/local.mk
include lib/docker/local.mk
include lib/fleet/local.mk
include lib/provider/local.mk
include lib/tool/local.mk
include lib/session/local.mk
include lib/conform/local.mk
include lib/control/local.mk
include lib/host/local.mk
include lib/rpc/local.mk
include lib/compat/local.mk
include lib/mcp/local.mk
