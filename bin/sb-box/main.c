/* SPDX-License-Identifier: MIT */
/* The table of commands of sb-box, and those that need only a few lines: init, signal. */
#include "config.h"

#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/spawn.h>

int
helper_fail(const char *what)
{
	(void)fprintf(stderr, "sb-box: %s: %s\n", what, strerror(errno));
	return SB_HELPER_FAILED;
}

/*
 * All there is to do for the first process: be there, and bury the dead. It cannot be killed from
 * inside.
 */
int
helper_main_init(int argc, char **argv)
{
	sigset_t child;

	(void)argc;
	(void)argv;
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, NULL);
	/* Who waits for it knows now that all around us is made. */
	(void)!write(2, SB_HELPER_READY, sizeof SB_HELPER_READY - 1);
	for (;;) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		(void)sigwaitinfo(&child, NULL);
	}
}

int
helper_main_signal(int argc, char **argv)
{
	if (argc != 3)
		return SB_HELPER_FAILED;
	(void)printf("%zu\n", helper_signal(argv[1], 0, (int)strtol(argv[2], NULL, 10)));
	return 0;
}

int
helper_join_net(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd >= 0 ? setns(fd, CLONE_NEWNET) : -1;

	if (fd >= 0)
		(void)close(fd);
	return r;
}

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} commands[] = {
	{ "run", helper_main_run },
	{ "enter", helper_main_enter },
	{ "init", helper_main_init },
	{ "dial", helper_main_dial },
	{ "shim", helper_main_shim },
	{ "serve", helper_main_serve },
	{ "forker", helper_main_forker },
	{ "await", helper_main_await },
	{ "find", helper_main_find },
	{ "signal", helper_main_signal },
	{ "guest", helper_main_guest },
	{ "guest-link", helper_main_guest_link },
	{ "place", helper_main_place },
	{ "shell", helper_main_shell },
	{ "sftp", helper_main_sftp },
	{ "agent", helper_main_agent },
};

#ifdef __SANITIZE_ADDRESS__
/*
 * Its look for leaks at the end needs to trace this process, which hangs for one that has entered
 * another pid namespace.
 */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int
__lsan_is_turned_off(void)
{
	return 1;
}
#endif

int
main(int argc, char **argv)
{
	/* Where nobody waits for a report, its descriptor must not be taken for something else. */
	if (fcntl(SB_SPAWN_REPORT_FD, F_GETFD) < 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (null >= 0 && null != SB_SPAWN_REPORT_FD) {
			(void)dup3(null, SB_SPAWN_REPORT_FD, O_CLOEXEC);
			(void)close(null);
		}
	}
	for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].main(argc - 1, argv + 1);
	(void)fprintf(stderr, "sb-box: started by the sandbox host, not by hand\n");
	return SB_HELPER_FAILED;
}
