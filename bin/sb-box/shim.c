/* SPDX-License-Identifier: MIT */
/*
 * sb-box shim: starts a program, copies its output where asked, and leaves its exit code in a file
 * for a host that comes later.
 */
#include "config.h"

#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/spawn.h>

#define ONCE_MS 20000

/* What is in the pipe goes to the file. False at its end. */
static bool
pump(int from, int to)
{
	char buf[65536];
	ssize_t n = read(from, buf, sizeof buf);

	if (n < 0 && errno == EINTR)
		return true;
	for (ssize_t at = 0; at < n;) {
		ssize_t w = write(to, buf + at, (size_t)(n - at));

		/* A full disk costs output, not the process. */
		if (w < 0 && errno != EINTR)
			break;
		at += w > 0 ? w : 0;
	}
	return n > 0;
}

/* `once` is a file that nobody needs after a while. */
static void
pump_all(int a, int b, const char *once)
{
	struct pollfd p[2] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };

	while (p[0].fd >= 0 || p[1].fd >= 0) {
		int n = poll(p, 2, once ? ONCE_MS : -1);

		if (n < 0 && errno != EINTR)
			return;
		if (n == 0 && once) {
			(void)unlink(once);
			once = NULL;
		}
		for (int i = 0; i < 2; i++)
			if (p[i].fd >= 0 && p[i].revents && !pump(p[i].fd, i + 1))
				p[i].fd = -1;
	}
}

/* The code beside its place first, so that who reads it finds all or nothing. */
static void
put_status(const char *file, int code)
{
	char tmp[4096], text[16];
	int fd, n = snprintf(text, sizeof text, "%d\n", code);

	(void)snprintf(tmp, sizeof tmp, "%s.new", file);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (write(fd, text, (size_t)n) == n)
		(void)rename(tmp, file);
	(void)close(fd);
}

int
helper_main_shim(int argc, char **argv)
{
	const char *status_file = NULL, *once = NULL;
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	bool pipes = false, last = false;
	sigset_t all, none;
	uid_t user = 0;
	int c, status, code;
	pid_t pid;

	while ((c = getopt(argc, argv, "+eps:u:U:")) != -1) {
		if (c == '?')
			return SB_HELPER_FAILED;
		pipes |= c == 'p';
		last |= c == 'e';
		if (c == 's')
			status_file = optarg;
		if (c == 'u')
			once = optarg;
		if (c == 'U')
			user = (uid_t)strtoul(optarg, NULL, 10);
	}
	if (optind >= argc || (pipes && (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)))
		return helper_fail("pipe");
	/* So that the command may open them by name, too (/dev/stderr). */
	if (pipes && user && (fchown(out[1], user, user) < 0 || fchown(err[1], user, user) < 0))
		return helper_fail("pipe");
	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	pid = fork();
	if (pid == 0) {
		if (pipes) {
			(void)dup2(out[1], 1);
			(void)dup2(err[1], 2);
		}
		if (last)
			(void)fcntl(SB_SPAWN_REPORT_FD, F_SETFD, FD_CLOEXEC);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)execvp(argv[optind], argv + optind);
		code = errno == ENOENT ? SB_HELPER_NOTFOUND : SB_HELPER_NOEXEC;
		if (last)
			helper_report(errno);
		(void)helper_fail(argv[optind]);
		_exit(code);
	}
	if (pid < 0)
		return helper_fail("fork");
	(void)close(SB_SPAWN_REPORT_FD);
	if (pipes) {
		(void)close(out[1]);
		(void)close(err[1]);
		pump_all(out[0], err[0], once);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (once)
		(void)unlink(once);
	code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (status_file)
		put_status(status_file, code);
	return code;
}
