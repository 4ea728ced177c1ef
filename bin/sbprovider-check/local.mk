# sbprovider-check: the conformance suite as a program. With the shared libraries, as a plugin is.
bin_PROGRAMS += sbprovider-check
sbprovider_check_SOURCES = %D%/main.c
sbprovider_check_LDADD = libsandbox.la libsbsync.la lib/base/libbase.la
