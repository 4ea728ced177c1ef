# Many hosts as one. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/fleet-pick.c %D%/fleet-pick.h \
	%D%/fleet-record.c %D%/fleet-record.h \
	%D%/fleet-table.c %D%/fleet-table.h \
	%D%/fleet-view.c %D%/fleet-view.h %D%/fleet-view-priv.h \
	%D%/fleet-view-pick.c \
	%D%/fleet-view-watch.c

include lib/fleet/etcd/local.mk
