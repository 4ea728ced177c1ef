/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/codec/confined.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <sync/codec/confined-filter.h>

#define N_KEEP (sizeof((struct sb_confined_opts *)0)->keep / sizeof(int))

/* ---- in the child ---- */

/* Bytes of address space the process has, 0 when not known. */
static uint64_t
address_space(void)
{
	char text[64] = { 0 };
	sb_autoclose int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		return 0;
	return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
limit(int what, uint64_t value)
{
	struct rlimit r = { .rlim_cur = value, .rlim_max = value };

	(void)setrlimit((__rlimit_resource_t)what, &r);
}

static void
limits(const struct sb_confined_opts *o)
{
	uint64_t have = address_space();

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	limit(RLIMIT_CORE, 0);
	if (o->max_cpu_s)
		limit(RLIMIT_CPU, o->max_cpu_s);
	if (have && o->max_memory < UINT64_MAX - have)
		limit(RLIMIT_AS, have + o->max_memory);
}

static void
signals(void)
{
	static const int from_terminal[] = { SIGINT, SIGQUIT, SIGHUP, SIGTSTP };
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, &sa, NULL);
	sa.sa_handler = SIG_IGN; /* those are for the parent */
	for (size_t i = 0; i < sizeof from_terminal / sizeof from_terminal[0]; i++)
		(void)sigaction(from_terminal[i], &sa, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* What it keeps to its places, nothing else. */
static bool
descriptors(const struct sb_confined_opts *o)
{
	int null = open("/dev/null", O_RDWR);
	int fds[N_KEEP];

	/* Out of the way of the places first. */
	for (size_t i = 0; i < N_KEEP; i++) {
		fds[i] = fcntl(o->keep[i] >= 0 ? o->keep[i] : null, F_DUPFD, 10);
		if (fds[i] < 0)
			return false;
	}
	for (size_t i = 0; i < N_KEEP; i++)
		if (dup2(fds[i], (int)i) < 0)
			return false;
	if (syscall(SYS_close_range, (unsigned)N_KEEP, ~0u, 0) < 0) {
		long max = sysconf(_SC_OPEN_MAX);

		for (int i = (int)N_KEEP; i < (max > 0 && max < 65536 ? max : 65536); i++)
			(void)close(i);
	}
	return true;
}

static _Noreturn void
child(const struct sb_confined_opts *o)
{
	signals();
	if (!descriptors(o))
		_exit(1);
	limits(o);
	o->main(sb_confined_filter(), o->arg);
	_exit(0);
}

/* ---- in the parent ---- */

int
sb_confined_start(struct sb_confined *c, const struct sb_confined_opts *o, struct sb_error *err)
{
	sigset_t all, old;
	int r = 0;

	*c = (struct sb_confined){ .pidfd = -1 };
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	c->pid = fork();
	if (c->pid == 0)
		child(o);
	if (c->pid < 0) {
		r = sb_fail_errno(err, "fork");
		c->pid = 0;
	} else {
		c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
		c->no_pidfd = c->pidfd < 0 && errno != ESRCH;
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

int
sb_confined_end(struct sb_confined *c, bool must_end)
{
	int status = -1;
	pid_t r;

	if (!c->pid)
		return -1;
	if (must_end && c->no_pidfd)
		(void)kill(c->pid, SIGKILL);
	else if (must_end && c->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
	if (c->pidfd >= 0)
		(void)close(c->pidfd);
	do
		r = waitpid(c->pid, &status, 0);
	while (r < 0 && errno == EINTR);
	status = r == c->pid ? status : -1;
	*c = (struct sb_confined){ .pidfd = -1 };
	return status;
}
