# lib/compat: the APIs of others, served by our host. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/e2b/e2b.c %D%/e2b/e2b-priv.h \
	%D%/e2b/e2b-connect.c \
	%D%/e2b/e2b-envd.c \
	%D%/e2b/e2b-file.c \
	%D%/e2b/e2b-filesystem.c \
	%D%/e2b/e2b-keeper.c \
	%D%/e2b/e2b-list.c \
	%D%/e2b/e2b-process.c \
	%D%/e2b/e2b-record.c \
	%D%/e2b/e2b-sandbox.c \
	%D%/e2b/e2b-snapshot.c \
	%D%/http/multipart.c %D%/http/multipart.h \
	%D%/http/query.c %D%/http/query.h \
	%D%/http/range.c %D%/http/range.h
EXTRA_DIST += %D%/README.md
