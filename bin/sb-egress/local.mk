# The egress proxy of a session, started by the sandbox host.
pkglibexec_PROGRAMS += sb-egress
sb_egress_SOURCES = \
	%D%/confine.c %D%/confine.h \
	%D%/main.c
sb_egress_LDADD = lib/egress/libegress.la lib/base/libbase.la
