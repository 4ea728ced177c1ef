/* SPDX-License-Identifier: MIT */
/*
 * meter OUT CMD ARG...    runs CMD and appends one line of JSON to OUT: wall and CPU seconds of it
 * and everything it started, the largest resident set of any of those processes, its exit code
 * meter --ssh OUT         the same for the command an SSH client asked for (sshd's ForceCommand)
 *
 * It adopts orphans, so that nothing the command leaves behind for others to reap goes uncounted.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct use {
	double wall, user, sys;
	long max_rss_kib;
	int code;
};

static double
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double
seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void
count(struct use *u, const struct rusage *ru)
{
	u->user += seconds(ru->ru_utime);
	u->sys += seconds(ru->ru_stime);
	if (ru->ru_maxrss > u->max_rss_kib)
		u->max_rss_kib = ru->ru_maxrss;
}

/* Reaps until `child` is gone, then what else has ended, giving stragglers a fifth of a second. */
static void
reap(pid_t child, double start, struct use *u)
{
	double until = 0;

	for (;;) {
		struct rusage ru;
		int status;
		pid_t got = wait4(-1, &status, until > 0 ? WNOHANG : 0, &ru);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 || (got == 0 && now() > until))
			return;
		if (got == 0) {
			(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
			continue;
		}
		count(u, &ru);
		if (got == child) {
			u->wall = now() - start;
			u->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			until = now() + 0.2;
		}
	}
}

static int
report(const char *path, const struct use *u)
{
	char line[256];
	int n, fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0) {
		(void)fprintf(stderr, "meter: open %s: %s\n", path, strerror(errno));
		return -1;
	}
	n = snprintf(line, sizeof line,
		"{\"wall\":%.6f,\"user\":%.6f,\"sys\":%.6f,\"max_rss_kib\":%ld,\"code\":%"
		"d}\n",
		u->wall, u->user, u->sys, u->max_rss_kib, u->code);
	if (n < 0 || (size_t)n >= sizeof line || write(fd, line, (size_t)n) != n) {
		(void)fprintf(stderr, "meter: write %s: %s\n", path, strerror(errno));
		(void)close(fd);
		return -1;
	}
	return close(fd);
}

int
main(int argc, char **argv)
{
	bool ssh = argc == 3 && strcmp(argv[1], "--ssh") == 0;
	const char *asked = ssh ? getenv("SSH_ORIGINAL_COMMAND") : NULL;
	struct use u = { 0 };
	double start;
	pid_t child;

	if (argc < 3 || (ssh && !asked)) {
		(void)fprintf(stderr,
			ssh ? "meter: no command was asked for\n" :
			      "usage: meter OUT CMD ARG... | meter --ssh OUT\n");
		return 2;
	}
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	start = now();
	child = fork();
	if (child < 0) {
		(void)fprintf(stderr, "meter: fork: %s\n", strerror(errno));
		return 126;
	}
	if (child == 0) {
		if (ssh)
			(void)execl("/bin/sh", "sh", "-c", asked, (char *)NULL);
		else
			(void)execvp(argv[2], argv + 2);
		(void)fprintf(stderr, "meter: %s: %s\n", ssh ? "/bin/sh" : argv[2],
			strerror(errno));
		_exit(127);
	}
	if (ssh) {
		/* The command alone holds the connection, so that its end is seen at once. */
		(void)close(0);
		(void)close(1);
	}
	reap(child, start, &u);
	return report(ssh ? argv[2] : argv[1], &u) < 0 ? 126 : u.code;
}
