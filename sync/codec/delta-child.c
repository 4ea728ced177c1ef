/* SPDX-License-Identifier: MIT */
/*
 * A child for work that may abort, run out of memory or never end.
 *
 * It is a fork without exec: libsbsync lives in programs that are not ours and in the
 * static agent, so there is no program of ours that is certain to be there. That is sound
 * although the parent has threads: between fork and _exit the child calls only librsync,
 * which takes no locks, the allocator, which glibc makes usable after fork, and system
 * calls. All signals are blocked across the fork and get their defaults in the child, so
 * no handler of the program runs there; all descriptors but the ones it needs are closed.
 *
 * It reads what a sandbox sent, so seccomp leaves it its descriptors and memory and nothing else
 * (delta-confine.h).
 *
 * Limits: RLIMIT_AS (what the process has already plus the budget), RLIMIT_CPU and
 * PR_SET_PDEATHSIG in the child; the parent counts output and time and kills it. Time
 * inside the caller's callbacks (a slow link) is not counted. The result comes through a
 * shared page, so it does not matter who reaps the child (a program may ignore SIGCHLD);
 * it is killed by pidfd, as its number may be another's then.
 */
#include "config.h"

#include <sync/codec/delta-child.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <sync/codec/delta-confine.h>

#define PIPE_LEN (1 << 20)
#define BUF_LEN (256u << 10)

/* Written by the child before it ends. */
struct result {
	int ended; /* 0: it never got there */
	int code;
	struct sb_error err;
};

/* ---- in the child ---- */

enum {
	CHILD_IN = 0,
	CHILD_OUT = 1,
	CHILD_FD = 3,
};

static ssize_t
child_read(void *to, size_t len, void *arg, struct sb_error *err)
{
	ssize_t n;

	(void)arg;
	do
		n = read(CHILD_IN, to, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? sb_fail_errno(err, "read from the parent") : n;
}

static int
child_write(const void *data, size_t len, void *arg, struct sb_error *err)
{
	(void)arg;
	return sb_file_write_all(CHILD_OUT, data, len, err);
}

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
child_limits(const struct sb_delta_budget *b)
{
	uint64_t have = address_space();

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, (uint64_t)b->max_ms / 1000 + 2);
	if (have && b->max_memory < UINT64_MAX - have)
		limit(RLIMIT_AS, have + b->max_memory);
}

static void
child_signals(void)
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

/* The three descriptors to their places, nothing else. */
static bool
child_descriptors(int in, int out, int fd)
{
	int null = open("/dev/null", O_RDWR);

	/* Out of the way of the places first. */
	in = fcntl(in >= 0 ? in : null, F_DUPFD, 10);
	out = fcntl(out, F_DUPFD, 10);
	fd = fcntl(fd, F_DUPFD, 10);
	if (in < 0 || out < 0 || fd < 0)
		return false;
	if (dup2(in, CHILD_IN) < 0 || dup2(out, CHILD_OUT) < 0 || dup2(fd, CHILD_FD) < 0)
		return false;
	if (null < 0 || dup2(null, 2) < 0)
		(void)close(2);
	if (syscall(SYS_close_range, CHILD_FD + 1, ~0u, 0) < 0) {
		long max = sysconf(_SC_OPEN_MAX);

		for (int i = CHILD_FD + 1; i < (max > 0 && max < 65536 ? max : 65536); i++)
			(void)close(i);
	}
	return true;
}

static _Noreturn void
child_main(const struct sb_delta_child_opts *o, int in, int out, struct result *res)
{
	struct sb_delta_io io = { .read = child_read, .write = child_write };

	child_signals();
	if (!child_descriptors(in, out, o->fd))
		_exit(1);
	child_limits(o->budget);
	(void)sb_delta_confine();
	res->code = o->task(&io, CHILD_FD, o->task_arg, &res->err);
	res->ended = 1;
	_exit(0);
}

/* ---- in the parent ---- */

struct child {
	const struct sb_delta_child_opts *o;
	struct result *res;
	pid_t pid;
	int pidfd; /* -1: it is gone, or the kernel has none */
	bool no_pidfd;
	int in, out; /* pipe ends; `in` is what the child reads; -1: closed */
	int64_t deadline_ms;
	uint64_t total;
	const uint8_t *data; /* to be written to it */
	size_t len;
	uint8_t *buf;
};

static void
close_end(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static int
make_pipe(int ours_end, int p[2], struct sb_error *err)
{
	if (pipe2(p, O_CLOEXEC) < 0)
		return sb_fail_errno(err, "pipe");
	(void)fcntl(p[0], F_SETPIPE_SZ, PIPE_LEN);
	if (fcntl(p[ours_end], F_SETFL, O_NONBLOCK) < 0)
		return sb_fail_errno(err, "pipe");
	return 0;
}

static int
start(struct child *c, struct sb_error *err)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 };
	sigset_t all, old;
	int r = make_pipe(0, out, err);

	if (r >= 0 && c->o->src)
		r = make_pipe(1, in, err);
	if (r >= 0) {
		(void)sigfillset(&all);
		(void)pthread_sigmask(SIG_SETMASK, &all, &old);
		c->pid = fork();
		if (c->pid == 0)
			child_main(c->o, in[0], out[1], c->res);
		if (c->pid < 0)
			r = sb_fail_errno(err, "fork");
		else
			c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
		c->no_pidfd = c->pid > 0 && c->pidfd < 0 && errno != ESRCH;
		(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	c->in = in[1];
	c->out = out[0];
	close_end(&in[0]);
	close_end(&out[1]);
	return r;
}

/* Asks the caller for more to write. What that takes is not the child's time. */
static int
ask_source(struct child *c, struct sb_error *err)
{
	const void *data = NULL;
	int64_t before = sb_now_ms();
	ssize_t n = c->o->src(&data, c->o->src_arg, err);

	c->deadline_ms += sb_now_ms() - before;
	if (n < 0)
		return (int)n;
	if (n == 0)
		close_end(&c->in);
	c->data = data;
	c->len = (size_t)n;
	return 0;
}

static int
give_sink(struct child *c, size_t n, struct sb_error *err)
{
	int64_t before = sb_now_ms();
	int r;

	if (n > c->o->budget->max_out - c->total)
		return sb_fail(err, SB_E_LIMIT, "result is larger than %llu bytes",
			(unsigned long long)c->o->budget->max_out);
	c->total += n;
	r = c->o->sink(c->buf, n, c->o->sink_arg, err);
	c->deadline_ms += sb_now_ms() - before;
	return r;
}

/* 1 when the child closed its output. */
static int
read_child(struct child *c, struct sb_error *err)
{
	ssize_t n = read(c->out, c->buf, BUF_LEN);

	if (n == 0)
		return 1;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return sb_fail_errno(err, "read from the child");
	return give_sink(c, (size_t)n, err);
}

static int
write_child(struct child *c, struct sb_error *err)
{
	ssize_t n = sb_file_write_nosig(c->in, c->data, c->len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && errno == EPIPE) { /* it has had enough; its result says why */
		close_end(&c->in);
		c->len = 0;
		return 0;
	}
	if (n < 0)
		return sb_fail_errno(err, "write to the child");
	c->data += n;
	c->len -= (size_t)n;
	return 0;
}

static int
wait_ready(struct child *c, struct pollfd p[3], struct sb_error *err)
{
	int64_t left = c->deadline_ms - sb_now_ms();

	p[0] = (struct pollfd){ .fd = c->out, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = c->in, .events = POLLOUT };
	p[2] = (struct pollfd){ .fd = sb_cancel_fd(c->o->cancel), .events = POLLIN };
	if (sb_cancel_requested(c->o->cancel))
		return sb_fail(err, SB_E_CANCELED, "delta: canceled");
	if (left <= 0)
		return sb_fail(err, SB_E_LIMIT, "delta took more than %u ms", c->o->budget->max_ms);
	if (poll(p, 3, left > 60000 ? 60000 : (int)left) < 0 && errno != EINTR)
		return sb_fail_errno(err, "poll");
	return 0;
}

/* Until the child closes its output. */
static int
pump(struct child *c, struct sb_error *err)
{
	int r = 0;

	while (r == 0) {
		struct pollfd p[3] = { 0 };

		if (c->in >= 0 && !c->len)
			r = ask_source(c, err);
		if (r == 0)
			r = wait_ready(c, p, err);
		if (r == 0 && c->in >= 0 && p[1].revents)
			r = write_child(c, err);
		if (r == 0 && p[0].revents)
			r = read_child(c, err);
	}
	return r < 0 ? r : 0;
}

/*
 * The child closed its output or must end. Its wait status, or -1 when someone else took
 * it.
 */
static int
reap(struct child *c, bool must_end)
{
	int status = -1;
	pid_t r;

	if (must_end && c->no_pidfd)
		(void)kill(c->pid, SIGKILL);
	else if (must_end && c->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
	close_end(&c->pidfd);
	do
		r = waitpid(c->pid, &status, 0);
	while (r < 0 && errno == EINTR);
	return r == c->pid ? status : -1;
}

static int
take_result(const struct result *res, int status, struct sb_error *err)
{
	if (res->ended) {
		struct sb_error e = res->err;

		e.code = res->code;
		e.msg[sizeof e.msg - 1] = 0;
		if (e.code >= 0)
			return 0;
		/* Memory that ran out where it could be told is the same limit. */
		if (e.code == SB_E_NOMEM)
			e.code = SB_E_LIMIT;
		if (err)
			*err = e;
		return e.code;
	}
	if (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return sb_fail(err, SB_E_LIMIT, "delta took too much processor time");
	if (status < 0 || (WIFSIGNALED(status) && WTERMSIG(status) != SIGSEGV))
		return sb_fail(err, SB_E_LIMIT, "delta ran out of memory");
	return sb_fail(err, SB_E_CHILD, "delta process failed (status %d)", status);
}

int
sb_delta_child_run(const struct sb_delta_child_opts *o, struct sb_error *err)
{
	sb_autofree uint8_t *buf = malloc(BUF_LEN);
	struct child c = { .o = o, .pidfd = -1, .in = -1, .out = -1, .buf = buf };
	int r, status;

	if (!buf)
		return sb_fail(err, SB_E_NOMEM, "delta: out of memory");
	c.res = mmap(NULL, sizeof *c.res, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		0);
	if (c.res == MAP_FAILED)
		return sb_fail_errno(err, "delta");
	c.deadline_ms = sb_now_ms() + o->budget->max_ms;
	r = start(&c, err);
	if (r >= 0) {
		r = pump(&c, err);
		close_end(&c.in);
		close_end(&c.out);
		status = reap(&c, r < 0);
		if (r >= 0)
			r = take_result(c.res, status, err);
	}
	close_end(&c.in);
	close_end(&c.out);
	(void)munmap(c.res, sizeof *c.res);
	return r;
}
