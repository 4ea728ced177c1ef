# lib/docker: drives the command lines of Docker's sandboxes and of container engines.
lib_libsandbox_core_la_SOURCES += \
	%D%/cli.c %D%/cli.h \
	%D%/docker.c %D%/docker-priv.h \
	%D%/docker-agent.c \
	%D%/docker-alias.c \
	%D%/docker-desktop.c \
	%D%/docker-ensure.c \
	%D%/docker-exec.c \
	%D%/docker-hosts.c \
	%D%/docker-list.c \
	%D%/docker-token.c \
	%D%/engine.c %D%/engine.h \
	%D%/engine-make.c \
	%D%/name.c %D%/name.h \
	%D%/yamldoc.c %D%/yamldoc.h
EXTRA_DIST += %D%/README.md
