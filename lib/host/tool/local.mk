# The tools of a session.
lib_libsandbox_core_la_SOURCES += \
	%D%/attach.c \
	%D%/tool-file.c \
	%D%/tool-git.c \
	%D%/tool-pattern.c \
	%D%/tool-search.c \
	%D%/tool-walk.c %D%/tool-walk.h \
	%D%/tool.c \
	%D%/toolcall.c %D%/toolcall.h \
	%D%/toolrun.c %D%/toolrun.h
