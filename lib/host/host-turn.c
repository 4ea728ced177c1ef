/* SPDX-License-Identifier: MIT */
/* The end of a turn: keeps tools out, takes the numbered snapshot, lets tools in again. */
#include "config.h"

#include <stdio.h>

#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host-snapshot.h>
#include <host/retention.h>

/* How many names a turn tries when something foreign has its first one. */
#define TURN_TRIES 8

/* Tools wait outside while the turn's snapshot is taken. */
static int
close_gate(struct sb_host *h, struct sb_hsess *s, const struct sb_host_call *call,
	struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->mu);
	s->gate = true;
	r = sb_hsess_drain(s, call, sb_deadline_in(h->o.drain_timeout_ms), err);
	if (r == 0)
		r = sb_host_state_admit(SB_HOST_OP_TURN, s->state, s->id, err);
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

static void
open_gate(struct sb_hsess *s)
{
	(void)pthread_mutex_lock(&s->mu);
	s->gate = false;
	(void)pthread_cond_broadcast(&s->cv);
	(void)pthread_mutex_unlock(&s->mu);
}

static int
take_turn(struct sb_host *h, struct sb_hsess *s, struct sb_host_snapshot *out, struct sb_error *err)
{
	unsigned long long turn = s->turn + 1;
	char name[SB_HOST_NAME_MAX + 1];
	int r = 0;

	for (unsigned i = 1; i <= TURN_TRIES; i++) {
		if (i == 1)
			(void)snprintf(name, sizeof name, "%s-%04llu", h->o.snapshot_prefix, turn);
		else
			(void)snprintf(name, sizeof name, "%s-%04llu-%u", h->o.snapshot_prefix,
				turn, i);
		r = sb_host_snapshot_take(h, s, name, SB_HOST_SNAP_TURN, turn, out, err);
		if (r != SB_E_SNAPSHOT_EXISTS)
			break;
	}
	return r < 0 ? sb_wrap(err, r, "snapshot turn %llu", turn) : 0;
}

int
sb_host_turn_complete(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_host_snapshot *out, struct sb_error *err)
{
	struct sb_hsess *s;
	int r = sb_host_op_start(h, id, SB_HOST_OP_TURN, true, call, &s, err);

	if (r < 0)
		return r;
	/* A storage without snapshots has turns, but nothing to show for them. */
	if (!h->st->ops->snapshots) {
		*out = (struct sb_host_snapshot){ .kind = SB_HOST_SNAP_TURN };
		return sb_host_op_done(h, s, 0);
	}
	r = close_gate(h, s, call, err);
	if (r == 0)
		r = take_turn(h, s, out, err);
	open_gate(s);
	if (r == 0) {
		atomic_fetch_add(&h->turns, 1);
		sb_host_retention_apply(h, s, SB_HOST_SNAP_TURN);
	}
	return sb_host_op_done(h, s, r);
}
