/* SPDX-License-Identifier: MIT */
/* The local scan that runs while the connection is made. */
#include "config.h"

#include <sync/run/run.h>

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <sync/run/run-priv.h>
#include <sync/scan/rules.h>

/*
 * The local scan while the connection is made, which takes round trips and hardly a processor. The
 * thread has the replica, the rules and the progress callback for itself until it is joined.
 */
struct sb_run_early {
	struct sb_run *run;
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
	struct sb_run_early *e = arg;

	e->code = sb_run_scan_local(e->run, e->source, &e->err);
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
early_free(struct sb_run_early *e)
{
	sb_cancel_free(e->stop);
	sb_rules_free(e->given);
	if (e->done >= 0)
		(void)close(e->done);
	free(e);
}

void
sb_run_early_start(struct sb_run *run, bool source)
{
	struct sb_run_early *e = calloc(1, sizeof *e);

	if (!e)
		return;
	*e = (struct sb_run_early){ .run = run,
		.source = source,
		.stop = sb_cancel_new(NULL),
		.done = eventfd(0, EFD_CLOEXEC),
		.given = copy_rules(run->rules) };
	if (!e->stop || e->done < 0 || !e->given) {
		early_free(e);
		return;
	}
	run->local->cancel = e->stop;
	if (pthread_create(&e->thread, NULL, scan, e) != 0) {
		run->local->cancel = run->o->cancel;
		early_free(e);
		return;
	}
	run->early = e;
}

const struct sb_rules *
sb_run_early_rules(const struct sb_run *run)
{
	return run->early ? run->early->given : run->rules;
}

int
sb_run_early_join(struct sb_run *run, struct sb_error *err)
{
	struct sb_run_early *e = run->early;
	struct pollfd p[] = { { .fd = e->done, .events = POLLIN },
		{ .fd = sb_cancel_fd(run->o->cancel), .events = POLLIN } };
	int r;

	/* Interrupted by a signal: look again. */
	while (!p[0].revents && !sb_cancel_requested(run->o->cancel))
		(void)poll(p, 2, -1);
	if (!p[0].revents)
		sb_cancel_request(e->stop);
	(void)pthread_join(e->thread, NULL);
	run->early = NULL;
	run->local->cancel = run->o->cancel;
	r = e->code;
	if (r < 0 && err)
		*err = e->err;
	early_free(e);
	return r;
}

void
sb_run_early_stop(struct sb_run *run)
{
	if (!run->early)
		return;
	sb_cancel_request(run->early->stop);
	(void)sb_run_early_join(run, NULL);
}
