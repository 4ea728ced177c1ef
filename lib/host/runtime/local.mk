# What sessions run in.
lib_libsandbox_core_la_SOURCES += \
	%D%/boxfilter.c %D%/boxfilter.h \
	%D%/boxserve.h \
	%D%/proctree.c %D%/proctree.h \
	%D%/reach.c %D%/reach.h \
	%D%/runtime-box.c %D%/runtime-box.h \
	%D%/runtime-bwrap.c \
	%D%/runtime-cgroup.c %D%/runtime-cgroup.h \
	%D%/runtime-dial.c \
	%D%/runtime-gvisor.c \
	%D%/runtime-none.c \
	%D%/runtime-oci.c %D%/runtime-oci.h \
	%D%/runtime-root.c \
	%D%/runtime-serve.c %D%/runtime-serve.h \
	%D%/runtime.c %D%/runtime.h
