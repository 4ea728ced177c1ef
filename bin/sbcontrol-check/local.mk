# sbcontrol-check: the conformance suite of controls as a program. With the shared libraries, as a
# plugin is.
bin_PROGRAMS += sbcontrol-check
sbcontrol_check_SOURCES = %D%/main.c
sbcontrol_check_LDADD = libsandbox.la libsbsync.la lib/base/libbase.la
