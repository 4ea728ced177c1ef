# The tools of a session.
lib_libsandbox_core_la_SOURCES += \
	%D%/attach.c \
	%D%/tool.c \
	%D%/tool-files.c \
	%D%/tool-gate.c %D%/tool-gate.h \
	%D%/tool-git.c \
	%D%/tool-list.c \
	%D%/tool-shell.c \
	%D%/tool-snapshot.c %D%/tool-snapshot.h \
	%D%/tool-table.c %D%/tool-table.h \
	%D%/toolcall.c %D%/toolcall.h \
	%D%/toolrun.c %D%/toolrun.h
