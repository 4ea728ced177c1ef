# How messages travel: frames, messages, the transport contract, endpoints, time limits.
sync_libsbsync_core_la_SOURCES += \
	%D%/endpoint.c %D%/endpoint.h \
	%D%/limit.c %D%/limit.h \
	%D%/proto.c %D%/proto.h \
	%D%/proto-plan.c \
	%D%/proto-priv.h \
	%D%/proto-result.c \
	%D%/proto-scan.c \
	%D%/tail.c %D%/tail.h \
	%D%/transport.h \
	%D%/transport-child.c \
	%D%/wire-blob.c \
	%D%/wire.c %D%/wire.h
