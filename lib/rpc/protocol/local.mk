# Connect on the wire: codes, envelopes, frames, fields.
lib_libsandbox_core_la_SOURCES += \
	%D%/code.c %D%/code.h \
	%D%/envelope.c %D%/envelope.h \
	%D%/failure.c %D%/failure.h \
	%D%/field.c %D%/field.h \
	%D%/attach-frame.c %D%/attach-frame.h \
	%D%/gzip.c %D%/gzip.h \
	%D%/json.h
