# lib/base: the ground everything stands on. Linked into both libraries.
noinst_LTLIBRARIES += %D%/libbase.la
lib_base_libbase_la_SOURCES = \
	%D%/buf.c %D%/buf.h \
	%D%/cleanup.h \
	%D%/error.c

sbincludedir = $(includedir)/sb
sbinclude_HEADERS = \
	lib/sb/cancel.h lib/sb/error.h lib/sb/log.h
