/* SPDX-License-Identifier: MIT */
/*
 * Runs a program to its end: feeds it, collects what it prints, and ends it when time is up
 * (sb_child_run of base/child.h).
 */
#include "config.h"

#include <base/child.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <base/spawn.h>
#include <sb/log.h>

/* How often to look for the child's end where the kernel has no pidfd. */
#define LOOK_MS 20

enum { POLL_IN, POLL_OUT, POLL_ERR, POLL_CHILD, POLL_CANCEL, POLL_N };

struct child_run {
	struct sb_child c;
	const uint8_t *in;
	size_t in_left;
	struct sb_buf *out;
	struct sb_buf *err_out;
};

static void
close_end(int *fd)
{
	sb_cleanup_close_(fd);
	*fd = -1;
}

/*
 * Writes what the pipe takes; closes it at the end of the input or when the child closed
 * its side.
 */
static int
feed(struct child_run *run, struct sb_error *err)
{
	while (run->in_left) {
		ssize_t n = sb_file_write_nosig(run->c.in, run->in, run->in_left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno == EPIPE)
			break;
		if (n < 0)
			return sb_fail_errno(err, "write to the child");
		run->in += n;
		run->in_left -= (size_t)n;
	}
	close_end(&run->c.in);
	return 0;
}

/* Keeps what fits; what does not leaves SB_E_FULL in the buffer. */
static void
keep(struct sb_buf *to, const uint8_t *data, size_t n)
{
	size_t room = to->max - to->len;
	size_t fits = n < room ? n : room;

	sb_buf_add(to, data, fits);
	if (fits < n)
		sb_buf_add(to, data + fits, n - fits);
}

/* Reads at most `max` bytes once. Closes the pipe at its end. */
static int
drain(int *fd, struct sb_buf *to, size_t max, struct sb_error *err)
{
	uint8_t chunk[16384];
	ssize_t n;

	do
		n = read(*fd, chunk, max < sizeof chunk ? max : sizeof chunk);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : sb_fail_errno(err, "read from the child");
	if (!n)
		close_end(fd);
	keep(to, chunk, (size_t)n);
	if (to->failed == SB_E_NOMEM)
		return sb_fail(err, SB_E_NOMEM, "output of the child: out of memory");
	return (int)n;
}

/*
 * The child is gone, so all it wrote is in the pipe. Takes that and no more: something it
 * left behind may hold the pipe open for ever.
 */
static int
drain_rest(int *fd, struct sb_buf *to, struct sb_error *err)
{
	int left = 0;

	if (*fd < 0 || ioctl(*fd, FIONREAD, &left) < 0)
		return 0;
	while (left > 0 && *fd >= 0) {
		int n = drain(fd, to, (size_t)left, err);

		if (n < 0)
			return n;
		if (!n)
			break;
		left -= n;
	}
	return 0;
}

static int
serve(struct child_run *run, const struct pollfd *p, struct sb_error *err)
{
	int r = 0;

	if (p[POLL_IN].revents)
		r = feed(run, err);
	if (r >= 0 && p[POLL_OUT].revents)
		r = drain(&run->c.out, run->out, SIZE_MAX, err);
	if (r >= 0 && p[POLL_ERR].revents)
		r = drain(&run->c.errfd, run->err_out, SIZE_MAX, err);
	return r;
}

static int
loop(struct child_run *run, const struct sb_cancel *cancel, sb_deadline d, const char *name,
	struct sb_error *err)
{
	while (!sb_child_ended(&run->c)) {
		struct pollfd p[POLL_N] = {
			[POLL_IN] = { .fd = run->c.in, .events = POLLOUT },
			[POLL_OUT] = { .fd = run->c.out, .events = POLLIN },
			[POLL_ERR] = { .fd = run->c.errfd, .events = POLLIN },
			[POLL_CHILD] = { .fd = run->c.pidfd, .events = POLLIN },
			[POLL_CANCEL] = { .fd = sb_cancel_fd(cancel), .events = POLLIN },
		};
		int ms = sb_deadline_poll_ms(d);
		int r = sb_check_alive(cancel, d, name, err);

		if (r < 0)
			return r;
		if (run->c.pidfd < 0 && (ms < 0 || ms > LOOK_MS))
			ms = LOOK_MS;
		if (poll(p, POLL_N, ms) < 0) {
			if (errno == EINTR)
				continue;
			return sb_fail_errno(err, "poll");
		}
		r = serve(run, p, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * What our caller asked for decides which descriptors are pipes; the rest stays as in the
 * options.
 */
static void
choose_io(struct sb_spawn_opts *o, const struct child_run *run)
{
	const bool piped[3] = { run->in != NULL, run->out != NULL, run->err_out != NULL };

	for (int i = 0; i < 3; i++) {
		if (piped[i])
			o->io[i] = SB_SPAWN_PIPE;
		else if (o->io[i] == SB_SPAWN_PIPE)
			o->io[i] = SB_SPAWN_NULL;
	}
}

static int
set_nonblocking(const struct sb_child *c, struct sb_error *err)
{
	const int fds[3] = { c->in, c->out, c->errfd };

	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0 && fcntl(fds[i], F_SETFL, O_NONBLOCK) < 0)
			return sb_fail_errno(err, "make a pipe non-blocking");
	return 0;
}

int
sb_child_run(const char *const *argv, const struct sb_spawn_opts *opts, const void *in,
	size_t in_len, struct sb_buf *out, struct sb_buf *err_out, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err)
{
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct child_run run = { .in = in, .in_left = in_len, .out = out, .err_out = err_out };
	char name[128];
	int r;

	if (opts)
		memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	o.size = sizeof o;
	choose_io(&o, &run);
	(void)sb_escape(argv[0], strlen(argv[0]), name, sizeof name);
	r = sb_check_alive(cancel, d, name, err);
	if (r < 0)
		return r;
	r = sb_spawn(argv, &o, &run.c, err);
	if (r < 0)
		return r;
	r = set_nonblocking(&run.c, err);
	if (r >= 0)
		r = loop(&run, cancel, d, name, err);
	if (r >= 0)
		r = drain_rest(&run.c.out, out, err);
	if (r >= 0)
		r = drain_rest(&run.c.errfd, err_out, err);
	if (r >= 0)
		r = sb_child_wait(&run.c, NULL, SB_NEVER, err);
	/* After a reap this only closes the pipes. */
	sb_child_stop(&run.c, 0);
	return r < 0 ? r : sb_child_exit_code(&run.c);
}
