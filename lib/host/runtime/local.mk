# What sessions run in.
lib_libsandbox_core_la_SOURCES += \
	%D%/box.c %D%/box.h \
	%D%/box-dial.c \
	%D%/box-egress.c %D%/box-egress.h \
	%D%/box-mount.c %D%/box-mount.h \
	%D%/box-root.c \
	%D%/box-stage.c %D%/box-stage.h \
	%D%/box-stock.c %D%/box-stock.h \
	%D%/box-watch.c %D%/box-watch.h \
	%D%/boxfilter.c %D%/boxfilter.h \
	%D%/cgroup-find.c %D%/cgroup.c %D%/cgroup.h \
	%D%/helper-wire.h \
	%D%/network.c \
	%D%/oci.c %D%/oci.h \
	%D%/proctree.c %D%/proctree.h \
	%D%/reach.c %D%/reach.h \
	%D%/resident.c %D%/resident.h \
	%D%/runtime.c %D%/runtime.h \
	%D%/runtime-bwrap.c \
	%D%/runtime-gvisor.c \
	%D%/runtime-none.c
