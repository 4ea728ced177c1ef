# The tools that work on files: their workers as the host sees them, and what runs in those.
lib_libsandbox_core_la_SOURCES += \
	%D%/filepool.c %D%/filepool.h \
	%D%/files-wire.h \
	%D%/params.c %D%/params.h \
	%D%/toolspec.c %D%/toolspec.h

# What only bin/sb-files and the tests are made of.
noinst_LTLIBRARIES += %D%/libfiles.la
lib_host_files_libfiles_la_SOURCES = \
	%D%/confine.c %D%/confine.h \
	%D%/filejob.c %D%/filejob.h \
	%D%/filejob-search.c \
	%D%/filejob-text.c \
	%D%/fileserve.c %D%/fileserve.h \
	%D%/linear.cc %D%/linear.h \
	%D%/params.c \
	%D%/pathglob.c %D%/pathglob.h \
	%D%/pattern.c %D%/pattern.h \
	%D%/toolspec.c \
	%D%/walk.c %D%/walk.h
FILES_LDADD = lib/host/files/libfiles.la lib/tool/libtools.la lib/base/libbase.la \
	$(JANSSON_LIBS) $(RE2_LIBS)
