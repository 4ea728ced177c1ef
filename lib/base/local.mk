# lib/base: the ground everything stands on. Linked into both libraries.
noinst_LTLIBRARIES += %D%/libbase.la
lib_base_libbase_la_SOURCES = \
	%D%/array.c %D%/array.h \
	%D%/base64.c %D%/base64.h \
	%D%/buf.c %D%/buf.h \
	%D%/cancel.c \
	%D%/check.c \
	%D%/child.c %D%/child.h \
	%D%/child-run.c \
	%D%/cleanup.h \
	%D%/cond.c %D%/cond.h \
	%D%/cursor.c %D%/cursor.h \
	%D%/deadline.c \
	%D%/error.c \
	%D%/escape.c %D%/escape.h \
	%D%/file.c %D%/file.h \
	%D%/forker.c %D%/forker.h \
	%D%/log.c \
	%D%/memory.c %D%/memory.h \
	%D%/now.c \
	%D%/opt.c %D%/opt.h \
	%D%/opt-help.c \
	%D%/owndir.c %D%/owndir.h \
	%D%/path.c %D%/path.h \
	%D%/path-remove.c \
	%D%/procid.c %D%/procid.h \
	%D%/quote.c %D%/quote.h \
	%D%/random.c %D%/random.h \
	%D%/secret.c %D%/secret.h \
	%D%/spawn.c %D%/spawn.h \
	%D%/str.c %D%/str.h \
	%D%/strlist.c %D%/strlist.h \
	%D%/strmap.c %D%/strmap.h \
	%D%/thread.c %D%/thread.h \
	%D%/utf8.c %D%/utf8.h \
	%D%/work.c %D%/work.h

sbincludedir = $(includedir)/sb
sbinclude_HEADERS = \
	lib/sb/cancel.h lib/sb/error.h lib/sb/log.h lib/sb/strlist.h
