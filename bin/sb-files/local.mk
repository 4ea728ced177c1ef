# The worker that works on the files of one session for the host.
pkglibexec_PROGRAMS += sb-files
sb_files_SOURCES = %D%/main.c
sb_files_LDADD = $(FILES_LDADD)
