/* SPDX-License-Identifier: MIT */
/*
 * sb-box forker: waits in the control groups of a box and starts programs there for the host, so
 * that they are in them from their first instruction on. They are children of the host, as this
 * process is. Moving a process into a group of version 1 makes the whole machine wait for a grace
 * period; a process that is born there costs nothing.
 */
#include "config.h"

#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/forker.h>
#include <base/spawn.h>

#define CONTROL 0

struct order {
	struct sb_forker_order head;
	int fds[SB_FORKER_FDS];
	char *text, **argv, **env;
};

/* The head with its descriptors. False at the end, and for nonsense. */
static bool
receive(struct order *o)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(SB_FORKER_FDS * sizeof(int))];
	} control;
	struct iovec v = { &o->head, sizeof o->head };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control };
	const struct cmsghdr *h;
	ssize_t n;

	do
		n = recvmsg(CONTROL, &m, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	while (n < 0 && errno == EINTR);
	h = n == (ssize_t)sizeof o->head ? CMSG_FIRSTHDR(&m) : NULL;
	if (!h || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS ||
		h->cmsg_len != CMSG_LEN(SB_FORKER_FDS * sizeof(int)))
		return false;
	memcpy(o->fds, CMSG_DATA(h), sizeof o->fds);
	return true;
}

/* The texts of it: arguments, then the environment. */
static bool
read_texts(struct order *o)
{
	const uint32_t n = o->head.argc + o->head.envc;
	size_t at = 0;

	o->text = malloc(o->head.bytes + 1u);
	o->argv = calloc((size_t)n + 2, sizeof *o->argv);
	if (!o->text || !o->argv || o->head.argc == 0 ||
		!helper_read_all(CONTROL, o->text, o->head.bytes))
		return false;
	o->text[o->head.bytes] = '\0';
	o->env = o->argv + o->head.argc + 1;
	for (uint32_t i = 0; i < n; i++) {
		if (at >= o->head.bytes)
			return false;
		*(i < o->head.argc ? &o->argv[i] : &o->env[i - o->head.argc]) = o->text + at;
		at += strlen(o->text + at) + 1;
	}
	return true;
}

/* In the child, whose parent is the host. */
static _Noreturn void
become(struct order *o)
{
	sigset_t none;

	(void)sigemptyset(&none);
	/* They came from a process that keeps 0 to 3 for others: all are above. */
	for (int i = 0; i < SB_FORKER_FDS; i++)
		if (dup2(o->fds[i], i) < 0)
			_exit(127);
	if (!o->head.leads)
		(void)fcntl(SB_SPAWN_REPORT_FD, F_SETFD, FD_CLOEXEC);
	(void)syscall(SYS_close_range, 4u, ~0u, 0u);
	(void)setsid();
	if (o->head.tied &&
		(prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != (pid_t)o->head.host))
		_exit(127);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execve(o->argv[0], o->argv, o->env);
	helper_report(errno);
	_exit(127);
}

static void
obey(struct order *o)
{
	int32_t pid = (int32_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		become(o);
	if (pid < 0)
		pid = -errno;
	(void)!send(CONTROL, &pid, sizeof pid, MSG_NOSIGNAL);
}

int
helper_main_forker(int argc, char **argv)
{
	sigset_t all;
	bool on = true;
	int c;

	while ((c = getopt(argc, argv, "+g:")) != -1)
		if (c != 'g' || helper_join_group(optarg) < 0)
			return helper_fail(c == 'g' ? optarg : "forker");
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	/* Ready: the host waits for this byte. */
	if (send(CONTROL, "", 1, MSG_NOSIGNAL) != 1)
		return SB_HELPER_FAILED;
	while (on) {
		struct order o = { .fds = { -1, -1, -1, -1 } };

		on = receive(&o) && o.head.bytes <= SB_FORKER_BYTES_MAX &&
			o.head.argc <= SB_FORKER_ARGS_MAX && o.head.envc <= SB_FORKER_ARGS_MAX &&
			read_texts(&o);
		if (on)
			obey(&o);
		for (int i = 0; i < SB_FORKER_FDS; i++)
			if (o.fds[i] >= 0)
				(void)close(o.fds[i]);
		free(o.text);
		free(o.argv);
	}
	return 0;
}
