/* SPDX-License-Identifier: MIT */
/* A transport to an agent that runs in a thread of this process, for shadows. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <sync/replica/agent.h>
#include <sync/wire/transport.h>

/*
 * An agent in a thread of this process, for a tree of our own: the shadow of a machine that runs
 * none.
 */
struct thread_transport {
	struct sb_transport base;
	char *state_dir;
	struct sb_log log;
	struct sb_cancel *cancel;
	int in, out; /* the agent's ends */
	int done_fd; /* eventfd: the agent has ended */
	pthread_t thread;
	bool runs;
	_Atomic int result; /* once it has ended; `err` is written before */
	struct sb_error err;
};

static void *
serve(void *arg)
{
	static const uint64_t one = 1;
	struct thread_transport *t = arg;
	struct sb_agent_opts o = SB_AGENT_OPTS_INIT;
	struct sb_transport *inner = sb_transport_fds(t->in, t->out, &t->err);

	o.state_dir = t->state_dir;
	o.cancel = t->cancel;
	o.log = t->log;
	/*
	 * Its controller is this process: as long as it lives it is there, however long it talks
	 * with the far side meanwhile.
	 */
	o.stall_ms = 0;
	t->result = inner ? sb_agent_serve(inner, &o, &t->err) : t->err.code;
	sb_transport_free(inner);
	(void)shutdown(t->in, SHUT_RDWR);
	(void)shutdown(t->out, SHUT_RDWR);
	(void)!write(t->done_fd, &one, sizeof one);
	return NULL;
}

static int
thread_close_write(struct sb_transport *t, struct sb_error *err)
{
	if (shutdown(t->wfd, SHUT_WR) < 0 && errno != ENOTCONN && errno != EPIPE)
		return sb_fail_errno(err, "close the way to the agent");
	return 0;
}

static int
thread_wait(struct sb_transport *base, sb_deadline d, struct sb_exit *out, struct sb_error *err)
{
	struct thread_transport *t = (struct thread_transport *)base;
	struct pollfd p = { .fd = t->done_fd, .events = POLLIN };
	int n;

	memset(out, 0, sizeof *out);
	do
		n = poll(&p, 1, sb_deadline_poll_ms(d));
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return sb_fail(err, SB_E_TIMEOUT, "the agent still runs");
	out->known = true;
	out->code = t->result < 0 ? 1 : 0;
	if (t->result < 0)
		(void)snprintf(out->stderr_tail, sizeof out->stderr_tail, "%s", t->err.msg);
	return 0;
}

static void
thread_cancel(struct sb_transport *base)
{
	struct thread_transport *t = (struct thread_transport *)base;

	sb_cancel_request(t->cancel);
	(void)shutdown(base->rfd, SHUT_RDWR);
	(void)shutdown(base->wfd, SHUT_RDWR);
}

static void
thread_wire_bytes(const struct sb_transport *t, uint64_t *up, uint64_t *down)
{
	(void)t;
	*up = *down = 0;
}

static void
thread_free(struct sb_transport *base)
{
	struct thread_transport *t = (struct thread_transport *)base;

	if (t->runs) {
		thread_cancel(base);
		(void)pthread_join(t->thread, NULL);
	}
	sb_cleanup_close_(&base->rfd);
	sb_cleanup_close_(&base->wfd);
	sb_cleanup_close_(&t->in);
	sb_cleanup_close_(&t->out);
	sb_cleanup_close_(&t->done_fd);
	sb_cancel_free(t->cancel);
	free(t->state_dir);
	free(t);
}

static const struct sb_transport_ops thread_ops = {
	.name = "thread",
	.close_write = thread_close_write,
	.wait = thread_wait,
	.cancel = thread_cancel,
	.wire_bytes = thread_wire_bytes,
	.free = thread_free,
};

static int
start(struct thread_transport *t, const char *state_dir, struct sb_error *err)
{
	int up[2], down[2], r;

	if (state_dir && !(t->state_dir = strdup(state_dir)))
		return sb_fail(err, SB_E_NOMEM, "agent: out of memory");
	t->cancel = sb_cancel_new(err);
	if (!t->cancel)
		return err ? err->code : SB_E_NOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, up) < 0)
		return sb_fail_errno(err, "make a socket pair");
	t->base.wfd = up[0];
	t->in = up[1];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, down) < 0)
		return sb_fail_errno(err, "make a socket pair");
	t->base.rfd = down[0];
	t->out = down[1];
	t->done_fd = eventfd(0, EFD_CLOEXEC);
	if (t->done_fd < 0)
		return sb_fail_errno(err, "make an event descriptor");
	r = pthread_create(&t->thread, NULL, serve, t);
	if (r != 0) {
		errno = r;
		return sb_fail_errno(err, "start a thread");
	}
	t->runs = true;
	return 0;
}

struct sb_transport *
sb_transport_thread(const char *state_dir, const struct sb_log *log, struct sb_error *err)
{
	struct thread_transport *t = calloc(1, sizeof *t);

	if (!t) {
		sb_fail(err, SB_E_NOMEM, "agent: out of memory");
		return NULL;
	}
	t->base = (struct sb_transport){ .ops = &thread_ops, .rfd = -1, .wfd = -1, .efd = -1 };
	t->in = t->out = t->done_fd = -1;
	t->log = *log;
	if (start(t, state_dir, err) < 0) {
		thread_free(&t->base);
		return NULL;
	}
	return &t->base;
}
