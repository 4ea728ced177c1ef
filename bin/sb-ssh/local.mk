# The process of one SSH connection, for the gateway of sbhostd.
if HAVE_LIBSSH
pkglibexec_PROGRAMS += sb-ssh
endif
sb_ssh_SOURCES = \
	%D%/agent.c \
	%D%/channel.c \
	%D%/confine.c \
	%D%/door.h \
	%D%/link.c \
	%D%/login.c \
	%D%/main.c \
	%D%/pump.c \
	lib/compat/ssh/sshagent.c lib/compat/ssh/sshagent.h \
	lib/compat/ssh/sshwire.c lib/compat/ssh/sshwire.h
sb_ssh_CFLAGS = $(AM_CFLAGS) $(LIBSSH_CFLAGS)
sb_ssh_LDADD = lib/base/libbase.la $(LIBSSH_LIBS)
