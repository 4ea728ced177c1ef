# Reaching the other side: connections, deployment of the agent, machines without an agent.
sync_libsbsync_core_la_SOURCES += \
	%D%/agentless-fetch.c \
	%D%/agentless-list.c \
	%D%/agentless-push.c \
	%D%/agentless-shadow.c %D%/agentless-shadow.h \
	%D%/agentless.h \
	%D%/conn-int.h \
	%D%/conn.c \
	%D%/deploy-find.c \
	%D%/deploy-script.c \
	%D%/deploy.c %D%/deploy.h \
	%D%/doctor.c %D%/doctor.h \
	%D%/link.c %D%/link.h \
	%D%/marker.c %D%/marker.h \
	%D%/remote.c %D%/remote.h \
	%D%/transport-rsh.c \
	%D%/transport-thread.c

# Where the agent program is looked for.
AM_CPPFLAGS += -DSB_PKGLIBEXECDIR='"$(pkglibexecdir)"'
