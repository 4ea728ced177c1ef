# lib/base: the ground everything stands on. Linked into both libraries.
noinst_LTLIBRARIES += %D%/libbase.la
lib_base_libbase_la_SOURCES = \
	%D%/buf.c %D%/buf.h \
	%D%/cancel.c \
	%D%/cleanup.h \
	%D%/error.c \
	%D%/file.c %D%/file.h \
	%D%/log.c \
	%D%/opt.c %D%/opt.h \
	%D%/opt-help.c \
	%D%/path.c %D%/path.h \
	%D%/path-remove.c \
	%D%/spawn.c %D%/spawn.h \
	%D%/spawn-run.c \
	%D%/str.c %D%/str.h

sbincludedir = $(includedir)/sb
sbinclude_HEADERS = \
	lib/sb/cancel.h lib/sb/error.h lib/sb/log.h
