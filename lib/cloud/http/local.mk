# The HTTP client of everything that calls a service, and JSON from outside. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/json.c %D%/json.h \
	%D%/rest.c %D%/rest.h %D%/rest-priv.h \
	%D%/rest-again.c \
	%D%/rest-answer.c \
	%D%/rest-log.c \
	%D%/rest-try.c
