# libsbsync: the delta-sync engine. The core is a convenience library so that tests reach private
# symbols.
noinst_LTLIBRARIES += %D%/libsbsync-core.la
EXTRA_DIST += %D%/README.md
sync_libsbsync_core_la_SOURCES = %D%/sync-version.c
sync_libsbsync_core_la_LIBADD = lib/base/libbase.la

lib_LTLIBRARIES += libsbsync.la
libsbsync_la_SOURCES =
libsbsync_la_LIBADD = %D%/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS)
libsbsync_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined
pkgconfig_DATA += %D%/libsbsync.pc

sbsyncincludedir = $(includedir)/sbsync
sbsyncinclude_HEADERS = \
	%D%/sbsync/conn.h \
	%D%/sbsync/doctor.h \
	%D%/sbsync/session.h \
	%D%/sbsync/sync.h \
	%D%/sbsync/version.h

# The rooms, in the order data flows.
include sync/tree/local.mk
include sync/scan/local.mk
include sync/codec/local.mk
include sync/wire/local.mk
include sync/plan/local.mk
include sync/replica/local.mk
include sync/ssh/local.mk
include sync/remote/local.mk
include sync/run/local.mk
include sync/session/local.mk
