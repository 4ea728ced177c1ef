# Reaching the other side: endpoints, transports, SSH, deployment of the agent.
sync_libsbsync_core_la_SOURCES += \
	%D%/agentless.h \
	%D%/agentless-fetch.c \
	%D%/agentless-list.c \
	%D%/agentless-push.c \
	%D%/agentless-shadow.c %D%/agentless-shadow.h \
	%D%/deploy.c %D%/deploy.h \
	%D%/deploy-find.c \
	%D%/deploy-script.c \
	%D%/doctor.c %D%/doctor.h \
	%D%/endpoint.c %D%/endpoint.h \
	%D%/marker.c %D%/marker.h \
	%D%/remote.c %D%/remote.h \
	%D%/ssh.c %D%/ssh.h \
	%D%/ssh-agent.c %D%/ssh-agent.h \
	%D%/ssh-auth.c \
	%D%/ssh-channel.c %D%/ssh-channel.h \
	%D%/ssh-config.c %D%/ssh-config.h \
	%D%/ssh-conn.h \
	%D%/ssh-hash.c %D%/ssh-hash.h \
	%D%/ssh-key.c %D%/ssh-key.h \
	%D%/ssh-known.c %D%/ssh-known.h \
	%D%/ssh-net.c %D%/ssh-net.h \
	%D%/ssh-pump.c \
	%D%/ssh-tty.c \
	%D%/ssh-wire.c %D%/ssh-wire.h \
	%D%/transport-child.c %D%/transport.h \
	%D%/transport-rsh.c \
	%D%/transport-tail.c %D%/transport-tail.h \
	%D%/transport-thread.c

# Where the agent program is looked for.
AM_CPPFLAGS += -DSB_PKGLIBEXECDIR='"$(pkglibexecdir)"'
