# SSH by libssh2.
sync_libsbsync_core_la_SOURCES += \
	%D%/ssh.c %D%/ssh.h \
	%D%/ssh-agent.c %D%/ssh-agent.h \
	%D%/ssh-auth.c \
	%D%/ssh-channel.c %D%/ssh-channel.h \
	%D%/ssh-config.c %D%/ssh-config.h \
	%D%/ssh-priv.h \
	%D%/ssh-hash.c %D%/ssh-hash.h \
	%D%/ssh-key.c %D%/ssh-key.h \
	%D%/ssh-known.c %D%/ssh-known.h \
	%D%/ssh-net.c %D%/ssh-net.h \
	%D%/ssh-pump.c \
	%D%/ssh-tty.c \
	%D%/ssh-socket.c %D%/ssh-socket.h
