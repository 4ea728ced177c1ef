# What sessions run in.
lib_libsandbox_core_la_SOURCES += \
	%D%/boxfilter.c %D%/boxfilter.h \
	%D%/boxserve.h \
	%D%/cgroup.c %D%/cgroup.h \
	%D%/network.c \
	%D%/oci.c %D%/oci.h \
	%D%/proctree.c %D%/proctree.h \
	%D%/reach.c %D%/reach.h \
	%D%/resident.c %D%/resident.h \
	%D%/runtime.c %D%/runtime.h \
	%D%/runtime-box.c %D%/runtime-box.h \
	%D%/runtime-bwrap.c \
	%D%/runtime-dial.c \
	%D%/runtime-gvisor.c \
	%D%/runtime-none.c \
	%D%/runtime-root.c
