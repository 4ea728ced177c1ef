# The guest of a session: programs, files and watches inside its box.
lib_libsandbox_core_la_SOURCES += \
	%D%/guest.h \
	%D%/guest-call.c \
	%D%/guest-file.c \
	%D%/guest-link.c \
	%D%/guest-priv.h \
	%D%/guest-program.c \
	%D%/guest-wire.h
