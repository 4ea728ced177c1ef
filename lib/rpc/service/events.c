/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/service/events.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RING 1024

struct sb_rpc_reader {
	struct sb_rpc_events *events;
	struct sb_rpc_reader *next;
	uint64_t at; /* index of the next event for it */
	int wake;
};

struct sb_rpc_events {
	pthread_mutex_t mu;
	uint64_t n; /* published so far; event i is in ring[i % RING] */
	struct sb_rpc_reader *readers;
	struct sb_rpc_event ring[RING];
};

struct sb_rpc_events *
sb_rpc_events_new(struct sb_error *err)
{
	struct sb_rpc_events *e = calloc(1, sizeof *e);

	if (!e) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	(void)pthread_mutex_init(&e->mu, NULL);
	return e;
}

void
sb_rpc_events_free(struct sb_rpc_events *e)
{
	if (!e)
		return;
	(void)pthread_mutex_destroy(&e->mu);
	free(e);
}

void
sb_rpc_events_publish(struct sb_rpc_events *e, const struct sb_host_event *ev)
{
	struct sb_rpc_event *to;
	uint64_t one = 1;

	(void)pthread_mutex_lock(&e->mu);
	to = &e->ring[e->n++ % RING];
	to->seq = ev->seq;
	to->time_ns = ev->time_ns;
	to->state = ev->state;
	(void)snprintf(to->kind, sizeof to->kind, "%s", ev->kind);
	(void)snprintf(to->session, sizeof to->session, "%s", ev->session ? ev->session : "");
	(void)snprintf(to->subject, sizeof to->subject, "%s", ev->subject ? ev->subject : "");
	for (struct sb_rpc_reader *r = e->readers; r; r = r->next)
		(void)!write(r->wake, &one, sizeof one);
	(void)pthread_mutex_unlock(&e->mu);
}

/* With `mu` held: the index behind the event numbered `after`. */
static int
find_after(const struct sb_rpc_events *e, uint64_t after, uint64_t *out, struct sb_error *err)
{
	uint64_t first = e->n > RING ? e->n - RING : 0;

	for (uint64_t i = e->n; i > first; i--)
		if (e->ring[(i - 1) % RING].seq == after) {
			*out = i;
			return 0;
		}
	return sb_fail(err, SB_E_CORRUPT,
		"event %llu is not remembered: list the sessions and begin anew",
		(unsigned long long)after);
}

struct sb_rpc_reader *
sb_rpc_events_open(struct sb_rpc_events *e, uint64_t after, uint64_t *out_seq, struct sb_error *err)
{
	struct sb_rpc_reader *r = calloc(1, sizeof *r);
	int bad = 0;

	if (!r) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	r->events = e;
	r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->wake < 0) {
		(void)sb_fail_errno(err, "eventfd");
		free(r);
		return NULL;
	}
	(void)pthread_mutex_lock(&e->mu);
	r->at = e->n;
	if (after > 0)
		bad = find_after(e, after, &r->at, err);
	if (bad == 0) {
		*out_seq = after > 0 ? after : e->n > 0 ? e->ring[(e->n - 1) % RING].seq : 0;
		r->next = e->readers;
		e->readers = r;
	}
	(void)pthread_mutex_unlock(&e->mu);
	if (bad < 0) {
		(void)close(r->wake);
		free(r);
		return NULL;
	}
	return r;
}

void
sb_rpc_events_close(struct sb_rpc_reader *r)
{
	struct sb_rpc_reader **p;

	if (!r)
		return;
	(void)pthread_mutex_lock(&r->events->mu);
	for (p = &r->events->readers; *p != r; p = &(*p)->next)
		;
	*p = r->next;
	(void)pthread_mutex_unlock(&r->events->mu);
	(void)close(r->wake);
	free(r);
}

/* 1: `out` is filled; 0: nothing new. */
static int
take(struct sb_rpc_reader *r, struct sb_rpc_event *out, struct sb_error *err)
{
	struct sb_rpc_events *e = r->events;
	int got = 0;

	(void)pthread_mutex_lock(&e->mu);
	if (e->n > RING && r->at < e->n - RING) {
		got = sb_fail(err, SB_E_CORRUPT, "reader fell behind and lost events");
	} else if (r->at < e->n) {
		*out = e->ring[r->at++ % RING];
		got = 1;
	}
	(void)pthread_mutex_unlock(&e->mu);
	return got;
}

int
sb_rpc_events_next(struct sb_rpc_reader *r, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_rpc_event *out, struct sb_error *err)
{
	int got;

	while ((got = take(r, out, err)) == 0) {
		struct pollfd p[2] = {
			{ .fd = r->wake, .events = POLLIN },
			{ .fd = sb_cancel_fd(cancel), .events = POLLIN },
		};
		uint64_t count;
		int alive = sb_check_alive(cancel, d, "events", err);

		if (alive < 0)
			return alive;
		(void)poll(p, 2, sb_deadline_poll_ms(d));
		(void)!read(r->wake, &count, sizeof count);
	}
	return got < 0 ? got : 0;
}
