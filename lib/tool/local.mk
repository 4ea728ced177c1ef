# lib/tool: files and programs on behalf of an agent, on the machine where it runs. Needs lib/base
# only: it is part of libsandbox, and of the agent that is sent to other machines.
noinst_LTLIBRARIES += %D%/libtools.la
lib_tool_libtools_la_SOURCES = \
	%D%/place.c %D%/place.h \
	%D%/environ.c %D%/environ.h \
	%D%/far.c %D%/far.h \
	%D%/message.c %D%/message.h \
	%D%/launch.c %D%/launch.h \
	%D%/proc.c %D%/proc.h \
	%D%/roots.c %D%/roots.h \
	%D%/serve.c %D%/serve.h \
	%D%/terms.c %D%/terms.h \
	%D%/textfile.c %D%/textfile.h \
	%D%/window.c %D%/window.h \
	%D%/words.c %D%/words.h
