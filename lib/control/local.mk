# lib/control: the control plane: sandboxes anywhere, by one interface. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/control.c %D%/control-priv.h \
	%D%/control-address.c \
	%D%/control-request.c \
	%D%/control-sandbox.c \
	%D%/hostcall.c %D%/hostcall.h \
	%D%/hostsess.c %D%/hostsess.h \
	%D%/hostsess-process.c \
	%D%/instance.c \
	%D%/instance-local.c \
	%D%/instance-static.c \
	%D%/instctl.c %D%/instctl-priv.h \
	%D%/instctl-caps.c \
	%D%/instctl-create.c \
	%D%/instctl-record.c \
	%D%/instrec.c %D%/instrec.h \
	%D%/node.c
