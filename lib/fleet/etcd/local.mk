# The client of etcd.
lib_libsandbox_core_la_SOURCES += \
	%D%/etcd.c %D%/etcd.h %D%/etcd-priv.h \
	%D%/etcd-admin.c \
	%D%/etcd-json.c \
	%D%/etcd-kv.c \
	%D%/etcd-lease.c \
	%D%/etcd-watch.c
