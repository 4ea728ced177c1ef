# Connect on the wire: codes, envelopes, frames, fields.
lib_libsandbox_core_la_SOURCES += \
	%D%/base64.c %D%/base64.h \
	%D%/code.c %D%/code.h \
	%D%/envelope.c %D%/envelope.h \
	%D%/field.c %D%/field.h \
	%D%/frame.c %D%/frame.h \
	%D%/gzip.c %D%/gzip.h \
	%D%/json.c
