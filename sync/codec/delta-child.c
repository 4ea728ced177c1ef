/* SPDX-License-Identifier: MIT */
/*
 * librsync in a confined child (confined.h), under a budget: memory and processor time by limits;
 * the parent counts output and time and kills it. Time inside the caller's callbacks (a slow link)
 * is not counted. The result comes through a shared page, so it does not matter who reaps the child
 * (a program may ignore SIGCHLD).
 */
#include "config.h"

#include <sync/codec/delta-child.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <sync/codec/confined.h>

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

struct task {
	const struct sb_delta_child_opts *o;
	struct result *res;
};

static void
child_main(bool confined, void *arg)
{
	struct sb_delta_io io = { .read = child_read, .write = child_write };
	struct task *t = arg;

	(void)confined;
	t->res->code = t->o->task(&io, CHILD_FD, t->o->task_arg, &t->res->err);
	t->res->ended = 1;
}

/* ---- in the parent ---- */

struct child {
	const struct sb_delta_child_opts *o;
	struct result *res;
	struct sb_confined proc;
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
	struct task t = { .o = c->o, .res = c->res };
	struct sb_confined_opts o = { .max_memory = c->o->budget->max_memory,
		.max_cpu_s = c->o->budget->max_ms / 1000 + 2,
		.main = child_main,
		.arg = &t };
	int r = make_pipe(0, out, err);

	if (r >= 0 && c->o->src)
		r = make_pipe(1, in, err);
	if (r >= 0) {
		o.keep[CHILD_IN] = in[0];
		o.keep[CHILD_OUT] = out[1];
		o.keep[2] = -1;
		o.keep[CHILD_FD] = c->o->fd;
		r = sb_confined_start(&c->proc, &o, err);
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
	struct child c = { .o = o, .in = -1, .out = -1, .buf = buf };
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
		status = sb_confined_end(&c.proc, r < 0);
		if (r >= 0)
			r = take_result(c.res, status, err);
	}
	close_end(&c.in);
	close_end(&c.out);
	(void)munmap(c.res, sizeof *c.res);
	return r;
}
