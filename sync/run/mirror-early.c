/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/run/mirror-int.h>

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <sync/scan/rules.h>

/*
 * The local scan while the connection is made, which takes round trips and hardly a processor. The
 * thread has the replica, the rules and the progress callback for itself until it is joined.
 */
struct mirror_early {
	struct mirror *m;
	bool source;
	pthread_t thread;
	struct sb_cancel *stop;
	int done; /* readable when the scan is over */
	int code;
	struct sb_error err;
	struct sb_rules *given; /* the rules before the scan added what it found */
};

static void *
scan(void *arg)
{
	struct mirror_early *e = arg;

	e->code = mirror_scan_local(e->m, e->source, &e->err);
	(void)eventfd_write(e->done, 1);
	return NULL;
}

static struct sb_rules *
copy_rules(const struct sb_rules *rules)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, 16u << 20);
	return sb_rules_encode(rules, &b, NULL) == 0 && !b.failed ?
		sb_rules_decode(b.data, b.len, NULL) :
		NULL;
}

static void
early_free(struct mirror_early *e)
{
	sb_cancel_free(e->stop);
	sb_rules_free(e->given);
	if (e->done >= 0)
		(void)close(e->done);
	free(e);
}

void
mirror_early_start(struct mirror *m, bool source)
{
	struct mirror_early *e = calloc(1, sizeof *e);

	if (!e)
		return;
	*e = (struct mirror_early){ .m = m,
		.source = source,
		.stop = sb_cancel_new(NULL),
		.done = eventfd(0, EFD_CLOEXEC),
		.given = copy_rules(m->rules) };
	if (!e->stop || e->done < 0 || !e->given) {
		early_free(e);
		return;
	}
	m->local->cancel = e->stop;
	if (pthread_create(&e->thread, NULL, scan, e) != 0) {
		m->local->cancel = m->o->cancel;
		early_free(e);
		return;
	}
	m->early = e;
}

const struct sb_rules *
mirror_given_rules(const struct mirror *m)
{
	return m->early ? m->early->given : m->rules;
}

int
mirror_early_join(struct mirror *m, struct sb_error *err)
{
	struct mirror_early *e = m->early;
	struct pollfd p[] = { { .fd = e->done, .events = POLLIN },
		{ .fd = sb_cancel_fd(m->o->cancel), .events = POLLIN } };
	int r;

	/* Interrupted by a signal: look again. */
	while (!p[0].revents && !sb_cancel_requested(m->o->cancel))
		(void)poll(p, 2, -1);
	if (!p[0].revents)
		sb_cancel_request(e->stop);
	(void)pthread_join(e->thread, NULL);
	m->early = NULL;
	m->local->cancel = m->o->cancel;
	r = e->code;
	if (r < 0 && err)
		*err = e->err;
	early_free(e);
	return r;
}

void
mirror_early_stop(struct mirror *m)
{
	if (!m->early)
		return;
	sb_cancel_request(m->early->stop);
	(void)mirror_early_join(m, NULL);
}
