/* SPDX-License-Identifier: MIT */
/*
 * A program on the other side of a connection, as a handle (sb_handle_far_start of
 * provider/launchers.h).
 */
#include "config.h"

#include <provider/launchers.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <base/file.h>
#include <base/random.h>
#include <base/str.h>
#include <provider/marks.h>
#include <provider/toolset.h>
#include <sb/profile.h>
#include <sbsync/conn.h>
#include <tool/message.h>
#include <tool/launch.h>
#include <tool/serve.h>
#include <tool/window.h>

#define COPY_MS \
	2000 /* how long the taker of stderr may let the last words of what has ended wait */
#define START_MS 60000

enum far_stage {
	STAGE_RUNNING,
	STAGE_STDIN,
	STAGE_TERM,
	STAGE_KILL,
	STAGE_LOST, /* KILL was sent and nothing came back */
};

struct far_handle {
	struct sb_handle base;
	struct sb_conn_exec *x;
	struct sb_handle_far_opts o;
	char *cwd;
	int64_t pid; /* of the agent over there */
	bool tty;
	int grace_ms;
	int copy_fd; /* where stderr goes too; -1: nowhere */
	int wake_fd, done_fd;
	pthread_t watcher;
	atomic_bool closed; /* stdin */

	/* The watcher's. */
	struct sb_marks marks;
	struct sb_buf waiting; /* for copy_fd */
	enum far_stage stage;
	sb_deadline next;

	pthread_mutex_t mu;
	struct sb_window window;
	bool stop_asked, kill_asked, ended;
	struct sb_ended how;
};

static void
wake(struct far_handle *h)
{
	uint64_t one = 1;

	(void)!write(h->wake_fd, &one, sizeof one);
}

static void
take_text(const void *data, size_t len, void *arg)
{
	struct far_handle *h = arg;

	(void)pthread_mutex_lock(&h->mu);
	sb_window_add(&h->window, data, len);
	(void)pthread_mutex_unlock(&h->mu);
	if (h->copy_fd >= 0)
		sb_buf_add(&h->waiting, data, len);
}

/* False: whoever is to take stderr does not, yet. */
static bool
flush_copy(struct far_handle *h)
{
	while (h->waiting.len && h->copy_fd >= 0) {
		struct pollfd fd = { .fd = h->copy_fd, .events = POLLOUT };
		ssize_t n;

		if (poll(&fd, 1, 0) == 0)
			return false;
		n = sb_file_write_nosig(h->copy_fd, h->waiting.data,
			h->waiting.len < 4096 ? h->waiting.len : 4096);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (n <= 0) {
			sb_cleanup_close_(&h->copy_fd);
			h->copy_fd = -1;
			break;
		}
		sb_buf_consume(&h->waiting, (size_t)n);
	}
	sb_buf_reset(&h->waiting);
	return true;
}

static void
escalate(struct far_handle *h)
{
	bool stop, killed;

	(void)pthread_mutex_lock(&h->mu);
	stop = h->stop_asked;
	killed = h->kill_asked;
	(void)pthread_mutex_unlock(&h->mu);
	if (killed && h->stage < STAGE_TERM) {
		h->stage = STAGE_TERM;
		h->next = 0;
	} else if (stop && h->stage == STAGE_RUNNING) {
		h->closed = true;
		(void)sb_conn_exec_close_in(h->x, NULL);
		h->stage = STAGE_STDIN;
		h->next = sb_deadline_in(h->grace_ms);
	}
	if (h->stage == STAGE_RUNNING || !sb_deadline_passed(h->next))
		return;
	switch (h->stage) {
	case STAGE_STDIN:
		(void)h->o.signal(h->o.arg, h->pid, SIGTERM, 0, NULL);
		h->stage = STAGE_TERM;
		h->next = sb_deadline_in(SB_STOP_TERM_MS);
		break;
	case STAGE_TERM:
		(void)h->o.signal(h->o.arg, h->pid, SB_SERVE_SIG_KILL, 0, NULL);
		h->stage = STAGE_KILL;
		/* The far side ends the group in its own time; then we stop believing in it. */
		h->next = sb_deadline_in(SB_STOP_KILL_MS + SB_STOP_TERM_MS + 1000);
		break;
	default: h->stage = STAGE_LOST;
	}
}

static void
finish(struct far_handle *h)
{
	sb_deadline d = sb_deadline_in(COPY_MS);
	uint64_t one = 1;

	while (!flush_copy(h) && !sb_deadline_passed(d)) {
		struct pollfd fd = { .fd = h->copy_fd, .events = POLLOUT };

		(void)poll(&fd, 1, sb_deadline_poll_ms(d));
	}
	(void)pthread_mutex_lock(&h->mu);
	h->how = h->marks.ended ?
		(struct sb_ended){ .code = h->marks.code, .signal = h->marks.signal } :
		(struct sb_ended){ .code = 255, .lost = true };
	h->how.asked = h->stop_asked || h->kill_asked;
	h->ended = true;
	(void)pthread_mutex_unlock(&h->mu);
	(void)!write(h->done_fd, &one, sizeof one);
}

/* Drains stderr, finds the end in it, and carries out a stop. */
static void *
watch(void *arg)
{
	struct far_handle *h = arg;
	bool open = true;

	while (open && !h->marks.ended && h->stage != STAGE_LOST) {
		bool wait = !flush_copy(h);
		struct pollfd p[2] = {
			{ .fd = wait ? h->copy_fd : sb_conn_exec_err(h->x),
				.events = wait ? POLLOUT : POLLIN },
			{ .fd = h->wake_fd, .events = POLLIN },
		};
		char block[4096];
		uint64_t seen;
		ssize_t n;

		(void)poll(p, 2, sb_deadline_poll_ms(h->next));
		if (p[1].revents)
			(void)!read(h->wake_fd, &seen, sizeof seen);
		if (!wait && p[0].revents) {
			n = read(sb_conn_exec_err(h->x), block, sizeof block);
			if (n > 0)
				sb_marks_feed(&h->marks, block, (size_t)n, take_text, h);
			else if (n == 0 || (errno != EINTR && errno != EAGAIN))
				open = false;
		}
		escalate(h);
	}
	if (!open)
		sb_marks_flush(&h->marks, take_text, h);
	finish(h);
	return NULL;
}

static int64_t
far_pid(const struct sb_handle *h)
{
	(void)h;
	return 0;
}

static const char *
far_cwd(const struct sb_handle *h)
{
	return ((const struct far_handle *)h)->cwd;
}

static int
far_stdin(const struct sb_handle *b)
{
	const struct far_handle *h = (const struct far_handle *)b;

	return h->closed ? -1 : sb_conn_exec_in(h->x);
}

static int
far_stdout(const struct sb_handle *h)
{
	return sb_conn_exec_out(((const struct far_handle *)h)->x);
}

static int
far_close_stdin(struct sb_handle *b, struct sb_error *err)
{
	struct far_handle *h = (struct far_handle *)b;

	h->closed = true;
	return sb_conn_exec_close_in(h->x, err);
}

static char *
far_stderr(const struct sb_handle *b)
{
	struct far_handle *h = (struct far_handle *)(uintptr_t)b;
	sb_auto(sb_buf) struct sb_buf text;

	sb_buf_init(&text, SB_STDERR_TAIL_MAX + 1);
	(void)pthread_mutex_lock(&h->mu);
	(void)sb_window_text(&h->window, h->ended, &text);
	(void)pthread_mutex_unlock(&h->mu);
	for (size_t i = 0; i < text.len; i++)
		if (!text.data[i])
			text.data[i] = '?';
	return text.failed ? NULL : strdup(text.len ? (char *)text.data : "");
}

static int
far_done(const struct sb_handle *h)
{
	return ((const struct far_handle *)h)->done_fd;
}

static int
far_wait(struct sb_handle *b, const struct sb_call *call, struct sb_ended *out,
	struct sb_error *err)
{
	struct far_handle *h = (struct far_handle *)b;

	for (;;) {
		struct pollfd p[2] = {
			{ .fd = h->done_fd, .events = POLLIN },
			{ .fd = sb_cancel_fd(sb_call_cancel(call)), .events = POLLIN },
		};
		bool ended;
		int r;

		(void)pthread_mutex_lock(&h->mu);
		ended = h->ended;
		if (ended && out)
			*out = h->how;
		(void)pthread_mutex_unlock(&h->mu);
		if (ended)
			return 0;
		r = sb_call_check(call, "wait for a process", err);
		if (r < 0)
			return r;
		if (poll(p, 2, sb_deadline_poll_ms(sb_call_deadline(call))) < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
	}
}

static int
far_stop(struct sb_handle *b, const struct sb_call *call, struct sb_error *err)
{
	struct far_handle *h = (struct far_handle *)b;

	if (sb_cancel_requested(sb_call_cancel(call)))
		return sb_call_check(call, "stop a process", err);
	(void)pthread_mutex_lock(&h->mu);
	h->stop_asked = true;
	(void)pthread_mutex_unlock(&h->mu);
	wake(h);
	return far_wait(b, call, NULL, err);
}

static bool
has_ended(struct far_handle *h)
{
	bool ended;

	(void)pthread_mutex_lock(&h->mu);
	ended = h->ended;
	(void)pthread_mutex_unlock(&h->mu);
	return ended;
}

static int
far_signal(struct sb_handle *b, int sig, struct sb_error *err)
{
	struct far_handle *h = (struct far_handle *)b;

	if (sig < 1 || sig > 64)
		return sb_fail(err, SB_E_INVAL, "there is no signal %d", sig);
	return has_ended(h) ? 0 : h->o.signal(h->o.arg, h->pid, sig, 0, err);
}

static int
far_resize(struct sb_handle *b, unsigned short rows, unsigned short cols, struct sb_error *err)
{
	struct far_handle *h = (struct far_handle *)b;

	if (!h->tty)
		return sb_fail(err, SB_E_STATE, "what runs has no terminal");
	if (has_ended(h))
		return 0;
	return h->o.signal(h->o.arg, h->pid, SB_SERVE_SIG_SIZE, (uint32_t)rows << 16 | cols, err);
}

static void
release(struct far_handle *h)
{
	sb_conn_exec_free(h->x);
	h->o.let_go(h->o.arg);
	sb_cleanup_close_(&h->wake_fd);
	sb_cleanup_close_(&h->done_fd);
	sb_cleanup_close_(&h->copy_fd);
	sb_buf_free(&h->waiting);
	sb_window_free(&h->window);
	sb_marks_free(&h->marks);
	(void)pthread_mutex_destroy(&h->mu);
	free(h->cwd);
	free(h);
}

static void
far_free(struct sb_handle *b)
{
	struct far_handle *h = (struct far_handle *)b;

	if (!has_ended(h)) {
		(void)pthread_mutex_lock(&h->mu);
		h->kill_asked = true;
		(void)pthread_mutex_unlock(&h->mu);
		wake(h);
	}
	(void)pthread_join(h->watcher, NULL);
	release(h);
}

static const struct sb_handle_ops far_ops = {
	.version = SB_LAUNCHER_VERSION,
	.pid = far_pid,
	.cwd = far_cwd,
	.stdin_fd = far_stdin,
	.stdout_fd = far_stdout,
	.close_stdin = far_close_stdin,
	.stderr_tail = far_stderr,
	.done_fd = far_done,
	.wait = far_wait,
	.stop = far_stop,
	.signal = far_signal,
	.resize = far_resize,
	.free = far_free,
};

/* What the agent says to the request: the number it can be signalled by, or why not. */
static int
take_answer(struct far_handle *h, const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_cursor c;
	int64_t code;
	int r;

	sb_buf_init(&b, 65536);
	r = sb_message_recv(sb_conn_exec_out(h->x), 65536, &b, sb_call_cancel(call),
		sb_call_deadline(call), err);
	if (r < 0)
		return r;
	sb_cursor_init(&c, b.data, b.len);
	code = sb_cursor_svarint(&c);
	if (code < 0) {
		sb_autofree char *text = sb_message_text(&c);

		return sb_fail(err, code < -1000 ? SB_E_PEER : (int)code, "launch: %s",
			text ? text : "refused");
	}
	h->pid = (int64_t)sb_cursor_varint(&c);
	return c.bad || h->pid < 2 ?
		sb_fail(err, SB_E_PROTO, "launch: the answer of the far side is damaged") :
		0;
}

static int
request(struct far_handle *h, const struct sb_launch_spec *spec, const struct sb_call *call,
	struct sb_error *err)
{
	struct sb_launch l = { .cwd = h->cwd,
		.tty = spec->tty,
		.rows = spec->rows,
		.cols = spec->cols };
	sb_auto(sb_buf) struct sb_buf b;
	sb_auto(sb_strlist) struct sb_strlist argv = { 0 };
	struct sb_strlist env = { 0 };
	uint8_t word[16];
	int r = sb_random(word, sizeof word, err);

	sb_buf_init(&b, 16u << 20);
	(void)sb_str_hex(word, sizeof word, l.nonce);
	if (r == 0)
		r = sb_launch_words(spec, &argv, err);
	if (r == 0)
		r = sb_launch_env(spec, &env, err);
	if (r == 0)
		r = sb_marks_init(&h->marks, l.nonce, err);
	if (r == 0) {
		l.argv = sb_strlist_borrow(&argv);
		l.env = sb_strlist_borrow(&env);
		sb_launch_encode(&l, &b);
		r = sb_message_send(sb_conn_exec_in(h->x), &b, sb_call_cancel(call),
			sb_call_deadline(call), err);
	}
	if (b.data)
		explicit_bzero(b.data, b.len);
	sb_secrets_free(&env);
	return r;
}

int
sb_handle_far_start(const struct sb_handle_far_opts *o, const struct sb_launch_spec *spec,
	const struct sb_call *call, struct sb_handle **out, struct sb_error *err)
{
	struct far_handle *h = calloc(1, sizeof *h);
	struct sb_call within = sb_call_within(call, START_MS);
	int r;

	if (!h) {
		sb_conn_exec_free(o->x);
		o->let_go(o->arg);
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	h->base.ops = &far_ops;
	h->o = *o;
	h->x = o->x;
	h->tty = spec->tty;
	h->grace_ms = spec->stop_grace_ms ? spec->stop_grace_ms : SB_STOP_GRACE_MS;
	h->next = SB_NEVER;
	h->copy_fd = spec->stderr_fd >= 0 ? fcntl(spec->stderr_fd, F_DUPFD_CLOEXEC, 3) : -1;
	h->cwd = strdup(o->cwd ? o->cwd : "");
	h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&h->mu, NULL);
	sb_window_init(&h->window, SB_STDERR_TAIL_MAX);
	sb_buf_init(&h->waiting, 1u << 20);
	r = h->wake_fd < 0 || h->done_fd < 0 ? sb_fail_errno(err, "eventfd") :
		!h->cwd                      ? sb_fail(err, SB_E_NOMEM, "out of memory") :
					       request(h, spec, &within, err);
	if (r == 0)
		r = take_answer(h, &within, err);
	if (r == 0) {
		errno = pthread_create(&h->watcher, NULL, watch, h);
		r = errno ? sb_fail_errno(err, "thread") : 0;
	}
	if (r < 0) {
		release(h);
		return r;
	}
	*out = &h->base;
	return 0;
}
