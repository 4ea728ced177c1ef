/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/far.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <tool/message.h>

/* Somebody who waits for an answer. */
struct waiter {
	struct waiter *next;
	uint32_t id;
	int ready_fd; /* eventfd */
	bool ready;
	struct sb_buf *reply;
	int code;
	struct sb_error why;
};

struct sb_far {
	int rfd, wfd;
	struct sb_cancel *end;
	pthread_t reader;
	pthread_mutex_t send_mu; /* one message at a time */
	pthread_mutex_t mu;
	struct waiter *waiters;
	uint32_t last;
	bool broken;
	struct sb_error why;
};

static void
wake(struct waiter *w)
{
	uint64_t one = 1;

	w->ready = true;
	(void)!write(w->ready_fd, &one, sizeof one);
}

/* Gives an answer to the one who waits for it. Needs the lock. */
static void
deliver(struct sb_far *f, struct sb_buf *b)
{
	struct sb_cursor c;
	struct waiter *w;
	uint32_t id;
	int64_t code;

	sb_cursor_init(&c, b->data, b->len);
	id = sb_cursor_u32(&c);
	code = sb_cursor_svarint(&c);
	for (w = f->waiters; w && w->id != id; w = w->next)
		;
	if (!w || w->ready || c.bad)
		return;
	if (code >= 0) {
		sb_buf_add(w->reply, c.p, sb_cursor_left(&c));
		w->code = sb_buf_check(w->reply, "an answer", &w->why);
	} else {
		sb_autofree char *text = sb_message_text(&c);

		/* Codes of ours only: the other side is not trusted to invent some. */
		w->code = code < -1000 ? SB_E_PEER : (int)code;
		sb_fail(&w->why, w->code, "%s", text ? text : "no reason given");
	}
	wake(w);
}

static void *
read_answers(void *arg)
{
	struct sb_far *f = arg;
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_error err = { 0 };

	sb_buf_init(&b, SB_MESSAGE_MAX);
	while (sb_message_recv(f->rfd, SB_MESSAGE_MAX, &b, f->end, SB_NEVER, &err) == 0) {
		(void)pthread_mutex_lock(&f->mu);
		deliver(f, &b);
		(void)pthread_mutex_unlock(&f->mu);
		if (b.cap > (1u << 20)) {
			sb_buf_free(&b);
			sb_buf_init(&b, SB_MESSAGE_MAX);
		}
	}
	(void)pthread_mutex_lock(&f->mu);
	if (!f->broken) {
		f->broken = true;
		f->why = err;
	}
	for (struct waiter *w = f->waiters; w; w = w->next)
		if (!w->ready) {
			w->code = f->why.code;
			w->why = f->why;
			wake(w);
		}
	(void)pthread_mutex_unlock(&f->mu);
	return NULL;
}

struct sb_far *
sb_far_new(int rfd, int wfd, struct sb_error *err)
{
	struct sb_far *f = calloc(1, sizeof *f);

	if (!f) {
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	f->rfd = rfd;
	f->wfd = wfd;
	f->end = sb_cancel_new(err);
	if (!f->end) {
		free(f);
		return NULL;
	}
	(void)pthread_mutex_init(&f->mu, NULL);
	(void)pthread_mutex_init(&f->send_mu, NULL);
	errno = pthread_create(&f->reader, NULL, read_answers, f);
	if (errno) {
		sb_fail_errno(err, "thread");
		sb_cancel_free(f->end);
		free(f);
		return NULL;
	}
	return f;
}

void
sb_far_free(struct sb_far *f)
{
	if (!f)
		return;
	sb_cancel_request(f->end);
	(void)pthread_join(f->reader, NULL);
	sb_cancel_free(f->end);
	(void)pthread_mutex_destroy(&f->mu);
	(void)pthread_mutex_destroy(&f->send_mu);
	free(f);
}

int
sb_far_check(struct sb_far *f, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&f->mu);
	if (f->broken) {
		r = f->why.code;
		if (err)
			*err = f->why;
	}
	(void)pthread_mutex_unlock(&f->mu);
	return r;
}

static int
enter(struct sb_far *f, struct waiter *w, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&f->mu);
	if (f->broken) {
		r = f->why.code;
		if (err)
			*err = f->why;
	} else {
		w->id = ++f->last;
		w->next = f->waiters;
		f->waiters = w;
	}
	(void)pthread_mutex_unlock(&f->mu);
	return r;
}

static void
leave(struct sb_far *f, struct waiter *w)
{
	struct waiter **p;

	(void)pthread_mutex_lock(&f->mu);
	for (p = &f->waiters; *p && *p != w; p = &(*p)->next)
		;
	if (*p)
		*p = w->next;
	(void)pthread_mutex_unlock(&f->mu);
}

/* A message that was cut in the middle leaves nothing to talk over. */
static void
break_off(struct sb_far *f, const struct sb_error *why)
{
	(void)pthread_mutex_lock(&f->mu);
	if (!f->broken) {
		f->broken = true;
		f->why = *why;
	}
	(void)pthread_mutex_unlock(&f->mu);
	sb_cancel_request(f->end);
}

static int
send_request(struct sb_far *f, const struct waiter *w, enum sb_serve_op op,
	const struct sb_buf *args, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	int r;

	sb_buf_init(&b, SB_MESSAGE_MAX);
	sb_buf_add_u32(&b, w->id);
	sb_buf_add_u8(&b, (uint8_t)op);
	if (args) {
		r = sb_buf_check(args, "a request", err);
		if (r < 0)
			return r;
		sb_buf_add(&b, args->data, args->len);
	}
	(void)pthread_mutex_lock(&f->send_mu);
	r = sb_check_alive(cancel, d, "ask the other side", err);
	if (r == 0) {
		struct sb_error why = { 0 };

		r = sb_message_send(f->wfd, &b, cancel, d, &why);
		if (r < 0) {
			break_off(f, &why);
			if (err)
				*err = why;
		}
	}
	(void)pthread_mutex_unlock(&f->send_mu);
	return r;
}

static int
await(struct waiter *w, const struct sb_cancel *cancel, sb_deadline d, struct sb_error *err)
{
	for (;;) {
		struct pollfd p[2] = {
			{ .fd = w->ready_fd, .events = POLLIN },
			{ .fd = sb_cancel_fd(cancel), .events = POLLIN },
		};
		int n = poll(p, 2, sb_deadline_poll_ms(d));
		int r;

		if (n > 0 && p[0].revents)
			return 0;
		r = sb_check_alive(cancel, d, "wait for an answer", err);
		if (r < 0)
			return r;
		if (n < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
	}
}

int
sb_far_ask(struct sb_far *f, enum sb_serve_op op, const struct sb_buf *args,
	const struct sb_cancel *cancel, sb_deadline d, struct sb_buf *reply, struct sb_error *err)
{
	struct waiter w = { .reply = reply };
	int r;

	sb_buf_init(reply, SB_MESSAGE_MAX);
	w.ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w.ready_fd < 0)
		return sb_fail_errno(err, "eventfd");
	r = enter(f, &w, err);
	if (r == 0) {
		r = send_request(f, &w, op, args, cancel, d, err);
		if (r == 0)
			r = await(&w, cancel, d, err);
		leave(f, &w);
		if (r == 0 && w.code < 0) {
			r = w.code;
			if (err)
				*err = w.why;
		}
	}
	(void)close(w.ready_fd);
	return r;
}
