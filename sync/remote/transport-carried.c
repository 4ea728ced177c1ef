/* SPDX-License-Identifier: MIT */
/* A transport to a command that a carrier runs, on a thread of this process. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/strlist.h>
#include <sync/remote/conn.h>
#include <sync/remote/remote.h>
#include <sync/wire/tail.h>
#include <sync/wire/transport.h>

struct carried_transport {
	struct sb_transport base;
	const struct sb_carrier *carrier;
	struct sb_strlist argv;
	struct sb_cancel *cancel;
	struct sb_tail tail; /* of stderr */
	int fds[3];          /* the command's ends */
	int errfd, tee;      /* where its stderr is read, and copied to; -1: nowhere */
	int done;            /* an eventfd: it has ended */
	_Atomic int code;    /* then */
	pthread_t runner, reader;
	bool runs, reads;
};

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void *
run(void *arg)
{
	struct carried_transport *c = arg;
	sigset_t pipes;

	/* One that comes of our own writing stays with this thread, and goes with it. */
	(void)sigemptyset(&pipes);
	(void)sigaddset(&pipes, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipes, NULL);
	c->code = c->carrier->run((const char *const *)c->argv.v, c->fds, c->cancel);
	for (int i = 0; i < 3; i++)
		close_fd(&c->fds[i]);
	(void)eventfd_write(c->done, 1);
	return NULL;
}

static void *
read_stderr(void *arg)
{
	struct carried_transport *c = arg;
	char buf[4096];
	ssize_t n;

	while ((n = read(c->errfd, buf, sizeof buf)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		sb_tail_add(&c->tail, buf, (size_t)n);
		for (ssize_t at = 0, w; c->tee >= 0 && at < n; at += w)
			if ((w = send(c->tee, buf + at, (size_t)(n - at), MSG_NOSIGNAL)) < 0)
				break;
	}
	if (c->tee >= 0)
		(void)shutdown(c->tee, SHUT_WR);
	sb_tail_end(&c->tail);
	return NULL;
}

static int
carried_close_write(struct sb_transport *t, struct sb_error *err)
{
	if (shutdown(t->wfd, SHUT_WR) < 0 && errno != ENOTCONN && errno != EPIPE)
		return sb_fail_errno(err, "close the way to the command");
	return 0;
}

static int
carried_wait(struct sb_transport *t, sb_deadline d, struct sb_exit *out, struct sb_error *err)
{
	struct carried_transport *c = (struct carried_transport *)t;
	struct pollfd p[] = { { c->done, POLLIN, 0 }, { sb_cancel_fd(c->cancel), POLLIN, 0 } };

	while (!p[0].revents) {
		int r = sb_check_alive(c->cancel, d, "command", err);

		if (r < 0)
			return r;
		if (poll(p, 2, sb_deadline_poll_ms(d)) < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
	}
	sb_tail_wait_end(&c->tail, SB_NEVER);
	out->known = true;
	out->code = c->code;
	sb_tail_get(&c->tail, out->stderr_tail, sizeof out->stderr_tail);
	return 0;
}

static void
carried_cancel(struct sb_transport *t)
{
	struct carried_transport *c = (struct carried_transport *)t;

	sb_cancel_request(c->cancel);
	(void)shutdown(t->rfd, SHUT_RDWR);
	(void)shutdown(t->wfd, SHUT_RDWR);
	if (t->efd >= 0)
		(void)shutdown(t->efd, SHUT_RDWR);
}

static void
carried_wire_bytes(const struct sb_transport *t, uint64_t *up, uint64_t *down)
{
	(void)t;
	*up = *down = 0;
}

static void
carried_free(struct sb_transport *t)
{
	struct carried_transport *c = (struct carried_transport *)t;

	if (c->cancel)
		sb_cancel_request(c->cancel);
	close_fd(&t->rfd);
	close_fd(&t->wfd);
	close_fd(&t->efd);
	if (c->runs)
		(void)pthread_join(c->runner, NULL);
	for (int i = 0; i < 3; i++)
		close_fd(&c->fds[i]);
	if (c->reads)
		(void)pthread_join(c->reader, NULL);
	close_fd(&c->errfd);
	close_fd(&c->tee);
	close_fd(&c->done);
	sb_cancel_free(c->cancel);
	sb_tail_destroy(&c->tail);
	sb_strlist_free(&c->argv);
	free(c);
}

static const struct sb_transport_ops carried_ops = {
	.name = "carried",
	.close_write = carried_close_write,
	.wait = carried_wait,
	.cancel = carried_cancel,
	.wire_bytes = carried_wire_bytes,
	.free = carried_free,
};

/* One end for us, one for the other side. */
static bool
pair(int *ours, int *theirs)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return false;
	*ours = sv[0];
	*theirs = sv[1];
	return true;
}

static int
start(struct carried_transport *c, const char *const *argv, bool split, struct sb_error *err)
{
	int r;

	sb_strlist_add_all(&c->argv, argv);
	r = sb_strlist_check(&c->argv, err);
	if (r < 0)
		return r;
	c->cancel = sb_cancel_new(err);
	if (!c->cancel)
		return SB_E_NOMEM;
	c->done = eventfd(0, EFD_CLOEXEC);
	if (c->done < 0 || !pair(&c->base.wfd, &c->fds[0]) || !pair(&c->base.rfd, &c->fds[1]) ||
		!pair(&c->errfd, &c->fds[2]) || (split && !pair(&c->base.efd, &c->tee)))
		return sb_fail_errno(err, "make a socket pair");
	r = pthread_create(&c->reader, NULL, read_stderr, c);
	c->reads = r == 0;
	if (r == 0)
		r = pthread_create(&c->runner, NULL, run, c);
	c->runs = r == 0;
	errno = r;
	return r == 0 ? 0 : sb_fail_errno(err, "start a thread");
}

struct sb_transport *
sb_transport_carried(const struct sb_carrier *carrier, const char *const *argv, bool split,
	struct sb_error *err)
{
	struct carried_transport *c = calloc(1, sizeof *c);

	if (!c) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	c->base = (struct sb_transport){ .ops = &carried_ops, .rfd = -1, .wfd = -1, .efd = -1 };
	c->carrier = carrier;
	c->fds[0] = c->fds[1] = c->fds[2] = c->errfd = c->tee = c->done = -1;
	sb_tail_init(&c->tail);
	if (start(c, argv, split, err) < 0) {
		carried_free(&c->base);
		return NULL;
	}
	return &c->base;
}
