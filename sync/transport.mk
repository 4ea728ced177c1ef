# Reaching the other side: endpoints, transports, SSH, deployment of the agent.
sync_libsbsync_core_la_SOURCES += \
	%D%/endpoint.c %D%/endpoint.h \
	%D%/transport-child.c %D%/transport.h \
	%D%/transport-tail.c %D%/transport-tail.h
