# E2B's API, as a client of it. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/e2bapi.c %D%/e2bapi.h \
	%D%/envd.c %D%/envd.h %D%/envd-priv.h \
	%D%/envd-event.c %D%/envd-event.h \
	%D%/envd-run.c
