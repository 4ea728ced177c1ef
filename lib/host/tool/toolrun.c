/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/tool/toolrun.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <host/runtime/helper-wire.h>

#define CHUNK 65536
#define TIMEOUT_CODE 124
#define GONE_MS 3000

void
sb_toolrun_out_free(struct sb_toolrun_out *out)
{
	sb_buf_free(&out->out);
	sb_buf_free(&out->errs);
}

/* What is in the pipe now. Closes it at its end. */
static void
drain(const struct sb_toolrun_opts *o, struct sb_toolrun_out *out, int *fd, bool is_stderr)
{
	struct sb_buf *to = is_stderr ? &out->errs : &out->out;
	char chunk[CHUNK];
	ssize_t n;
	size_t fits;

	if (*fd < 0)
		return;
	n = read(*fd, chunk, sizeof chunk);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		(void)close(*fd);
		*fd = -1;
		return;
	}
	if (o->progress)
		o->progress(chunk, (size_t)n, is_stderr, o->arg);
	fits = to->max - to->len < (size_t)n ? to->max - to->len : (size_t)n;
	sb_buf_add(to, chunk, fits);
	out->truncated |= fits < (size_t)n;
}

/* Everything the call started ends with it. */
static void
kill_tree(const struct sb_toolrun_opts *o, pid_t leader)
{
	sb_deadline d = sb_deadline_in(GONE_MS);

	while (o->s->rt->ops->signal(o->s->rt, o->s->id, o->mark, leader, SIGKILL) > 0 &&
		!sb_deadline_passed(d))
		(void)usleep(2000);
}

enum end { END_NOT, END_EXIT, END_TIMEOUT, END_CANCELED };

static enum end
turn(const struct sb_toolrun_opts *o, sb_deadline limit, struct sb_child *c,
	struct sb_toolrun_out *out)
{
	const struct sb_cancel *cancel = o->call ? o->call->cancel : NULL;
	sb_deadline d = o->call ? sb_deadline_min(limit, o->call->deadline) : limit;
	struct pollfd p[] = {
		{ .fd = c->out, .events = POLLIN },
		{ .fd = c->errfd, .events = POLLIN },
		{ .fd = c->pidfd, .events = POLLIN },
		{ .fd = sb_cancel_fd(cancel), .events = POLLIN },
		{ .fd = sb_cancel_fd(o->kill), .events = POLLIN },
	};

	if (poll(p, sizeof p / sizeof p[0], sb_deadline_poll_ms(d)) < 0 && errno != EINTR)
		return END_CANCELED;
	if (sb_cancel_requested(cancel) || sb_cancel_requested(o->kill) ||
		(o->call && sb_deadline_passed(o->call->deadline)))
		return END_CANCELED;
	if (p[0].revents)
		drain(o, out, &c->out, false);
	if (p[1].revents)
		drain(o, out, &c->errfd, true);
	/* Its own pipes first: what it wrote before it ended is there to be read. */
	if (p[2].revents && !p[0].revents && !p[1].revents)
		return END_EXIT;
	return sb_deadline_passed(limit) ? END_TIMEOUT : END_NOT;
}

int
sb_toolrun_exec(const struct sb_toolrun_opts *o, struct sb_toolrun_out *out, struct sb_error *err)
{
	struct sb_spawn_opts io = SB_SPAWN_OPTS_INIT;
	struct sb_runtime_cmd cmd = { .session = o->s->id,
		.workspace = o->workspace,
		.argv = o->argv,
		.env = o->env,
		.mark = o->mark,
		.res = o->res,
		.network = o->s->network };
	const struct sb_runtime_ops *ops = o->s->rt->ops;
	uint64_t ooms = ops->ooms ? ops->ooms(o->s->rt, o->s->id) : 0;
	struct sb_child c;
	enum end e = END_NOT;
	sb_deadline limit;
	int r;

	*out = (struct sb_toolrun_out){ 0 };
	sb_buf_init(&out->out, o->max_output);
	sb_buf_init(&out->errs, o->max_output);
	io.io[1] = io.io[2] = SB_SPAWN_PIPE;
	r = sb_hsess_start(o->s, &cmd, &io, &c, err);
	if (r < 0)
		return r;
	(void)fcntl(c.out, F_SETFL, O_NONBLOCK);
	(void)fcntl(c.errfd, F_SETFL, O_NONBLOCK);
	limit = o->timeout_ms ? sb_deadline_min(o->deadline, sb_deadline_in(o->timeout_ms)) :
				o->deadline;
	while (e == END_NOT)
		e = turn(o, limit, &c, out);
	/*
	 * The helper inside has ended what was left in the background, unless it failed or was
	 * killed: a code from SB_HELPER_FAILED on may mean that.
	 */
	if (e == END_EXIT)
		(void)sb_child_wait(&c, NULL, SB_NEVER, NULL);
	if (e != END_EXIT || !ops->isolates || sb_child_exit_code(&c) >= SB_HELPER_FAILED)
		kill_tree(o, c.pid);
	sb_child_stop(&c, 0);
	out->timed_out = e == END_TIMEOUT;
	out->oom = ops->ooms && ops->ooms(o->s->rt, o->s->id) > ooms;
	out->exit_code = e == END_TIMEOUT ? TIMEOUT_CODE : sb_child_exit_code(&c);
	if (e != END_CANCELED)
		return 0;
	if (o->call && sb_deadline_passed(o->call->deadline))
		return sb_fail(err, SB_E_TIMEOUT, "tool call: deadline passed");
	return sb_fail(err, SB_E_CANCELED, "tool call: canceled");
}
