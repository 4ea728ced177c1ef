# libsbsync: the delta-sync engine. The core is a convenience library so that tests reach private symbols.
noinst_LTLIBRARIES += %D%/libsbsync-core.la
sync_libsbsync_core_la_SOURCES = \
	%D%/version.c

sync_libsbsync_core_la_LIBADD = lib/base/libbase.la

lib_LTLIBRARIES += libsbsync.la
libsbsync_la_SOURCES =
libsbsync_la_LIBADD = %D%/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS)
libsbsync_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined
pkgconfig_DATA += %D%/libsbsync.pc

sbsyncincludedir = $(includedir)/sbsync
sbsyncinclude_HEADERS = \
	%D%/sbsync/version.h

include sync/transport.mk
