/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/event.h>

#include <string.h>

#include <host/host-priv.h>

/* What waits beyond this is dropped, oldest first: a stuck receiver must not eat the host. */
#define QUEUE_MAX 10000

struct event {
	struct event *next;
	struct sb_host_event ev;
	char text[]; /* session, NUL, subject, NUL */
};

struct sb_host_event_queue {
	sb_host_event_fn fn;
	void *arg;
	pthread_mutex_t mu;
	struct event *first, **last;
	size_t n;
	uint64_t seq;
	bool delivering; /* one thread hands out at a time, which keeps the order */
};

struct sb_host_event_queue *
sb_host_event_new(sb_host_event_fn fn, void *arg, struct sb_error *err)
{
	struct sb_host_event_queue *q = calloc(1, sizeof *q);

	if (!q) {
		(void)sb_fail(err, SB_E_NOMEM, "events");
		return NULL;
	}
	q->fn = fn;
	q->arg = arg;
	q->last = &q->first;
	(void)pthread_mutex_init(&q->mu, NULL);
	return q;
}

/* With `mu` held. */
static struct event *
pop(struct sb_host_event_queue *q)
{
	struct event *e = q->first;

	if (e) {
		q->first = e->next;
		if (!q->first)
			q->last = &q->first;
		q->n--;
	}
	return e;
}

void
sb_host_event_free(struct sb_host_event_queue *q)
{
	struct event *e;

	if (!q)
		return;
	while ((e = pop(q)))
		free(e);
	(void)pthread_mutex_destroy(&q->mu);
	free(q);
}

void
sb_host_event_note(struct sb_host_event_queue *q, const char *kind, const char *session,
	const char *subject, enum sb_host_state state)
{
	size_t a = session ? strlen(session) + 1 : 0;
	size_t b = subject ? strlen(subject) + 1 : 0;
	struct event *e;

	if (!q->fn || !(e = calloc(1, sizeof *e + a + b)))
		return;
	e->ev.kind = kind;
	e->ev.state = state;
	e->ev.time_ns = sb_host_now_ns();
	if (session)
		e->ev.session = memcpy(e->text, session, a);
	if (subject)
		e->ev.subject = memcpy(e->text + a, subject, b);
	(void)pthread_mutex_lock(&q->mu);
	e->ev.seq = ++q->seq;
	*q->last = e;
	q->last = &e->next;
	if (++q->n > QUEUE_MAX)
		free(pop(q));
	(void)pthread_mutex_unlock(&q->mu);
}

void
sb_host_event_flush(struct sb_host_event_queue *q)
{
	struct event *e;

	if (!q->fn)
		return;
	(void)pthread_mutex_lock(&q->mu);
	if (!q->delivering) {
		q->delivering = true;
		while ((e = pop(q))) {
			(void)pthread_mutex_unlock(&q->mu);
			q->fn(&e->ev, q->arg);
			free(e);
			(void)pthread_mutex_lock(&q->mu);
		}
		q->delivering = false;
	}
	(void)pthread_mutex_unlock(&q->mu);
}
