# How messages travel: frames, messages, the transport contract, endpoints, time limits.
sync_libsbsync_core_la_SOURCES += \
	%D%/endpoint.c %D%/endpoint.h \
	%D%/limit.c %D%/limit.h \
	%D%/proto.c %D%/proto.h \
	%D%/transport-child.c \
	%D%/transport-tail.c %D%/transport-tail.h \
	%D%/transport.h \
	%D%/wire.c %D%/wire.h
