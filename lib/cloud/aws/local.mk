# lib/cloud/aws: credentials, signatures and calls of AWS and what speaks as it does. Part of
# libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/awscall.c %D%/awscall.h \
	%D%/awschain.c %D%/awschain.h \
	%D%/awsmeta.c %D%/awsmeta.h \
	%D%/awsprofile.c %D%/awsprofile.h \
	%D%/s3.c %D%/s3.h \
	%D%/s3-list.c \
	%D%/sigv4.c %D%/sigv4.h
