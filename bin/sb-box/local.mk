# The helper that leads into boxes and works inside; static, so that any root file system runs it.
pkglibexec_PROGRAMS += sb-box
sb_box_SOURCES = \
	%D%/agent.c \
	%D%/dial.c \
	%D%/enter.c \
	%D%/find.c \
	%D%/forker.c \
	%D%/guest.c %D%/guest.h \
	%D%/guest-file.c \
	%D%/guest-proc.c \
	%D%/guest-watch.c \
	%D%/helper.h \
	%D%/main.c \
	%D%/place.c \
	%D%/run.c \
	%D%/serve.c \
	%D%/sftp.c \
	%D%/shell.c \
	%D%/shim.c \
	%D%/tree.c \
	lib/host/runtime/boxfilter.c lib/host/runtime/boxfilter.h lib/host/runtime/helper-wire.h \
	lib/host/guest/guest-wire.h lib/base/forker.h \
	lib/compat/ssh/sftp.c lib/compat/ssh/sftp-dir.c lib/compat/ssh/sftp-file.c \
	lib/compat/ssh/sftp-more.c lib/compat/ssh/sshagent.c
sb_box_CFLAGS = $(AM_CFLAGS)
if !SANITIZED
sb_box_LDFLAGS = $(AM_LDFLAGS) -all-static -Wl,--gc-sections
endif
sb_box_LDADD = lib/base/libbase.la
