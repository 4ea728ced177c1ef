/* SPDX-License-Identifier: MIT */
/*
 * sb-box serve: stays in a box and runs commands for the host; sb-box await stands for one of them
 * on the host.
 */
#include "config.h"

#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FDS_MAX 4
/* What was killed and is not gone after so many rounds of 2 ms is left to the end of the box. */
#define KILL_ROUNDS 500
#define MARK "SB_SANDBOX_MARK="

struct served {
	struct served *next;
	pid_t pid;
	int channel;
	bool dropped; /* the host has gone away from it */
	bool leave;   /* what it leaves behind goes on */
	char *text;   /* arguments and environment */
	char **argv, **env;
};

static struct served *jobs;

static void
job_free(struct served *j)
{
	if (j->channel >= 0)
		(void)close(j->channel);
	free(j->text);
	free(j->argv);
	free(j);
}

static const char *
mark_of(const struct served *j)
{
	for (char **e = j->env; *e; e++)
		if (strncmp(*e, MARK, sizeof MARK - 1) == 0)
			return *e + sizeof MARK - 1;
	return NULL;
}

bool
helper_read_all(int fd, void *to, size_t len)
{
	char *p = to;

	while (len > 0) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* One byte with what came along; 0 at the end. */
static int
receive(int fds[FDS_MAX], size_t *n_fds)
{
	char c = 0;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec v = { &c, 1 };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control };
	ssize_t n = recvmsg(0, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *h;

	*n_fds = 0;
	if (n <= 0)
		return n < 0 && errno == EINTR ? -1 : 0;
	h = CMSG_FIRSTHDR(&m);
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
		*n_fds = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(h), *n_fds * sizeof(int));
	}
	/* Not every kernel knows MSG_CMSG_CLOEXEC. */
	for (size_t i = 0; i < *n_fds; i++)
		(void)fcntl(fds[i], F_SETFD, FD_CLOEXEC);
	return c;
}

/* Reads what is to be run. */
static struct served *
read_job(int channel, struct sb_helper_call *c)
{
	struct served *j = calloc(1, sizeof *j);
	size_t at = 0;

	if (!j)
		return NULL;
	j->channel = -1;
	if (!helper_read_all(channel, c, sizeof *c) || c->bytes == 0 ||
		c->bytes > SB_HELPER_BYTES_MAX || c->argc == 0 || c->argc > SB_HELPER_ARGS_MAX ||
		c->envc > SB_HELPER_ARGS_MAX)
		goto bad;
	j->text = malloc(c->bytes);
	j->argv = calloc((size_t)c->argc + c->envc + 2, sizeof *j->argv);
	if (!j->text || !j->argv || !helper_read_all(channel, j->text, c->bytes) ||
		j->text[c->bytes - 1] != '\0')
		goto bad;
	j->env = j->argv + c->argc + 1;
	for (uint32_t i = 0; i < c->argc + c->envc; i++) {
		if (at >= c->bytes)
			goto bad;
		*(i < c->argc ? &j->argv[i] : &j->env[i - c->argc]) = j->text + at;
		at += strlen(j->text + at) + 1;
	}
	return j;
bad:
	job_free(j);
	return NULL;
}

/* Until nothing is left that carries the mark or belongs to the command's session. */
static void
end_rest(const struct served *j)
{
	const struct timespec nap = { .tv_nsec = 2000000 };

	for (int i = 0; i < KILL_ROUNDS && helper_signal_session(mark_of(j), j->pid, SIGKILL) > 0;
		i++)
		(void)nanosleep(&nap, NULL);
}

static void
answer(const struct served *j, int code)
{
	int32_t wire = code;

	(void)!send(j->channel, &wire, sizeof wire, MSG_NOSIGNAL);
}

static void
begin(int fds[FDS_MAX], size_t n)
{
	struct sb_helper_call c;
	struct served *j = n > 0 ? read_job(fds[0], &c) : NULL;
	struct helper_job run = { .lifeline = -1,
		.cwd = NULL,
		.own_stdio = true,
		.stdio = { -1, -1, -1 } };
	size_t used = 1;

	if (!j) {
		for (size_t i = 0; i < n; i++)
			(void)close(fds[i]);
		return;
	}
	j->channel = fds[0];
	for (int i = 0; i < 3; i++)
		if ((c.given & 1u << i) && used < n)
			run.stdio[i] = fds[used++];
	j->leave = c.given & SB_HELPER_LEAVE;
	run.argv = j->argv;
	run.env = j->env;
	run.max_memory = c.max_memory;
	j->pid = helper_start(&run);
	for (size_t i = 1; i < n; i++)
		(void)close(fds[i]);
	if (j->pid < 0) {
		answer(j, helper_fail("fork"));
		job_free(j);
		return;
	}
	j->next = jobs;
	jobs = j;
}

static void
reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (struct served **p = &jobs; *p; p = &(*p)->next) {
			struct served *j = *p;

			if (j->pid != pid)
				continue;
			*p = j->next;
			if (!j->leave)
				end_rest(j);
			answer(j,
				WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
			job_free(j);
			break;
		}
}

static void
end_all(void)
{
	for (struct served *j = jobs; j; j = j->next)
		end_rest(j);
}

/* One wait for anything. False when the host is gone. */
static bool
turn(struct pollfd *p, size_t n, const sigset_t *mask)
{
	int fds[FDS_MAX], what;
	size_t n_fds, i = 1;

	if (ppoll(p, n, NULL, mask) <= 0)
		return true;
	for (struct served *j = jobs; j && i < n; j = j->next) {
		if (j->dropped)
			continue;
		/* The host sends nothing more: whatever comes is the end. */
		if (p[i++].revents) {
			j->dropped = true;
			end_rest(j);
		}
	}
	if (!p[0].revents)
		return true;
	what = receive(fds, &n_fds);
	if (what == SB_HELPER_CALL) {
		begin(fds, n_fds);
		return true;
	}
	if (what == SB_HELPER_HELLO && n_fds == 1)
		(void)!write(fds[0], &(char){ SB_HELPER_HELLO }, 1);
	for (i = 0; i < n_fds; i++)
		(void)close(fds[i]);
	return what == SB_HELPER_HELLO || what < 0;
}

int
helper_main_serve(int argc, char **argv)
{
	sigset_t all, open;
	bool on = true;

	(void)argc;
	(void)argv;
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	helper_catch_child();
	open = all;
	(void)sigdelset(&open, SIGCHLD);
	while (on) {
		struct pollfd *p;
		size_t n = 1;

		reap();
		for (struct served *j = jobs; j; j = j->next)
			n += !j->dropped;
		p = calloc(n, sizeof *p);
		if (!p)
			break;
		p[0] = (struct pollfd){ .fd = 0, .events = POLLIN };
		n = 1;
		for (struct served *j = jobs; j; j = j->next)
			if (!j->dropped)
				p[n++] = (struct pollfd){ .fd = j->channel, .events = POLLIN };
		on = turn(p, n, &open);
		free(p);
	}
	end_all();
	return 0;
}

/*
 * Stands for a command on the host: its end is the command's, and its own end is the end of the
 * command.
 */
int
helper_main_await(int argc, char **argv)
{
	int32_t code;

	(void)argc;
	(void)argv;
	if (!helper_read_all(0, &code, sizeof code) || code < 0 || code > 255)
		return 128 + SIGKILL;
	return code;
}
