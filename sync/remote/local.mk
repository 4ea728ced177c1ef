# Reaching the other side: connections, deployment of the agent, machines without an agent.
sync_libsbsync_core_la_SOURCES += \
	%D%/agentless.h \
	%D%/agentless-fetch.c \
	%D%/agentless-list.c \
	%D%/agentless-push.c \
	%D%/conn.c %D%/conn.h \
	%D%/conn-carry.c \
	%D%/deploy.c %D%/deploy.h \
	%D%/deploy-find.c \
	%D%/deploy-script.c \
	%D%/doctor-check.c \
	%D%/doctor.c %D%/doctor.h \
	%D%/exchange.c %D%/exchange.h \
	%D%/lend-tty.c %D%/lend-tty.h \
	%D%/link.c %D%/link.h \
	%D%/marker.c %D%/marker.h \
	%D%/remote.c %D%/remote.h \
	%D%/shadow.c %D%/shadow.h \
	%D%/transport-carried.c \
	%D%/transport-rsh.c \
	%D%/transport-thread.c

# Where the agent program is looked for.
AM_CPPFLAGS += -DSB_PKGLIBEXECDIR='"$(pkglibexecdir)"'

EXTRA_DIST += %D%/README.md
