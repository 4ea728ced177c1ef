/* SPDX-License-Identifier: MIT */
/* sb-box run: starts a command, waits for it, and ends what it leaves behind. */
#include "config.h"

#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/spawn.h>

#define FILES_MAX 65536
/* What was killed and is not gone after so many rounds of 2 ms is left to the end of the box. */
#define KILL_ROUNDS 1500

void
helper_report(int sys)
{
	const struct sb_spawn_report r = { SB_SPAWN_REPORT_EXEC, sys };

	if (write(SB_SPAWN_REPORT_FD, &r, sizeof r) < 0)
		errno = sys;
	errno = sys;
}

static void
on_child(int sig)
{
	(void)sig;
}

static void
limit(int what, rlim_t value)
{
	struct rlimit r;

	if (getrlimit((__rlimit_resource_t)what, &r) == 0 && value < r.rlim_max) {
		r.rlim_cur = r.rlim_max = value;
		(void)setrlimit((__rlimit_resource_t)what, &r);
	}
}

/* `fd`, or /dev/null for -1, becomes number `as`; those that are given are all above it. */
static void
become(int fd, int as)
{
	int null = fd < 0 ? open("/dev/null", O_RDWR) : -1;

	if (fd >= 0 || null != as)
		(void)dup2(fd >= 0 ? fd : null, as);
	if (null >= 0 && null != as)
		(void)close(null);
}

/* In the child: a session of its own, with the terminal if its input is one, then the program. */
static _Noreturn void
child(const struct helper_job *j)
{
	sigset_t none;
	int code;

	(void)setsid();
	for (int i = 0; i < 3 && j->own_stdio; i++)
		become(j->stdio[i], i);
	if (isatty(0))
		(void)ioctl(0, TIOCSCTTY, 0);
	if (j->null_stdin)
		become(-1, 0);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_NOFILE, FILES_MAX);
	if (j->max_procs)
		limit(RLIMIT_NPROC, (rlim_t)j->max_procs);
	if (j->max_memory)
		limit(RLIMIT_AS, (rlim_t)j->max_memory);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (j->cwd && chdir(j->cwd) < 0)
		_exit(helper_fail(j->cwd));
	/*
	 * The program is looked for where its own environment says; our memory is the parent's,
	 * which undoes it.
	 */
	if (j->env)
		environ = j->env;
	(void)execvp(j->argv[0], j->argv);
	code = errno == ENOENT || errno == ENOTDIR ? SB_HELPER_NOTFOUND : SB_HELPER_NOEXEC;
	helper_report(errno);
	(void)helper_fail(j->argv[0]);
	_exit(code);
}

/* Copying even this small a process is what costs most in gVisor. */
pid_t
helper_start(const struct helper_job *j)
{
	char **ours = environ;
	pid_t pid = vfork();

	if (pid == 0)
		child(j);
	environ = ours;
	return pid;
}

void
helper_catch_child(void)
{
	const struct sigaction sa = { .sa_handler = on_child };

	(void)sigaction(SIGCHLD, &sa, NULL);
}

/*
 * Until no child is left: orphans of the command come to us where the kernel knows subreapers, else
 * by their mark.
 */
static void
end_rest(bool reaper)
{
	const struct timespec nap = { .tv_nsec = 2000000 };
	const char *mark = reaper ? NULL : getenv("SB_SANDBOX_MARK");

	for (int i = 0; i < KILL_ROUNDS; i++) {
		pid_t got;

		while ((got = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (got < 0 && reaper)
			return;
		if (helper_signal(mark, getpid(), SIGKILL) == 0 && got < 0)
			return;
		(void)nanosleep(&nap, NULL);
	}
}

/* The command's wait status, or -1 when the lifeline ended first. */
static int
await(const struct helper_job *j, pid_t pid)
{
	sigset_t none;
	int status;

	(void)sigemptyset(&none);
	for (;;) {
		struct pollfd p = { .fd = j->lifeline, .events = POLLIN };
		pid_t got = waitpid(-1, &status, WNOHANG);

		if (got == pid)
			return status;
		if (got > 0)
			continue;
		if (got < 0 && errno == ECHILD)
			return -1;
		/* Only SIGCHLD is let in, and only here. */
		(void)sigfillset(&none);
		(void)sigdelset(&none, SIGCHLD);
		if (ppoll(&p, 1, NULL, &none) > 0) {
			char c;

			if (read(j->lifeline, &c, 1) <= 0)
				return -1;
		}
	}
}

int
helper_supervise(const struct helper_job *j)
{
	bool reaper = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
	sigset_t all;
	int status;
	pid_t pid;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	helper_catch_child();
	pid = helper_start(j);
	if (pid < 0)
		return helper_fail("fork");
	(void)close(SB_SPAWN_REPORT_FD);
	status = await(j, pid);
	if (status < 0 || !j->leave)
		end_rest(reaper);
	if (status < 0)
		return 128 + SIGKILL;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int
helper_main_run(int argc, char **argv)
{
	struct helper_job j = { .lifeline = -1 };
	int c;

	while ((c = getopt(argc, argv, "+lkm:C:")) != -1)
		switch (c) {
		case 'l':
			j.lifeline = fcntl(0, F_DUPFD_CLOEXEC, SB_SPAWN_REPORT_FD + 1);
			j.null_stdin = true;
			break;
		case 'k': j.leave = true; break;
		case 'm': j.max_memory = strtoull(optarg, NULL, 10); break;
		case 'C': j.cwd = optarg; break;
		default: return SB_HELPER_FAILED;
		}
	if (optind >= argc)
		return SB_HELPER_FAILED;
	j.argv = argv + optind;
	return helper_supervise(&j);
}
