# lib/mcp: a server of the Model Context Protocol around an environment.
lib_libsandbox_core_la_SOURCES += \
	%D%/mcp.c %D%/mcp-priv.h \
	%D%/mcp-message.c %D%/mcp-message.h \
	%D%/mcp-tool.c
