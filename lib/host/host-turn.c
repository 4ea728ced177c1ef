/* SPDX-License-Identifier: MIT */
/* The end of a turn: keeps tools out, takes the numbered snapshot, lets tools in again. */
#include "config.h"

#include <limits.h>
#include <stdio.h>

#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host-snapshot.h>
#include <host/retention.h>

/* How many names a turn tries when something foreign has its first one. */
#define TURN_TRIES 8

static void
turn_name(const struct sb_host *h, unsigned long long turn, unsigned i,
	char out[SB_HOST_NAME_MAX + 1])
{
	if (i == 1)
		(void)snprintf(out, SB_HOST_NAME_MAX + 1, "%s-%04llu", h->o.snapshot_prefix, turn);
	else
		(void)snprintf(out, SB_HOST_NAME_MAX + 1, "%s-%04llu-%u", h->o.snapshot_prefix,
			turn, i);
}

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

/*
 * Whether the workspace is what the newest snapshot has, which is `out` then, as this turn's. 1, 0,
 * or an error.
 */
static int
reuse(struct sb_host *h, struct sb_hsess *s, struct sb_host_snapshot *out, struct sb_error *err)
{
	char name[SB_HOST_NAME_MAX + 1];
	struct sb_error why = { 0 };
	const struct sb_snap *snap;
	int r = 0;

	/* Where nobody can tell, a snapshot does no harm. */
	if (!h->st->ops->unchanged || h->st->ops->unchanged(h->st, s->id, name, &why) != 1)
		return 0;
	(void)pthread_mutex_lock(&s->mu);
	snap = sb_hsess_snap_find(s, name);
	if (snap && snap->intent == SB_INTENT_NONE) {
		r = sb_host_snapshot_describe(h, s, snap, out, err);
		if (r == 0) {
			s->turn++;
			r = sb_hostdb_session_update(h->db, s, s->state, false, err);
			if (r < 0) {
				s->turn--;
				sb_host_snapshot_clear(out);
			}
		}
		if (r == 0) {
			out->turn = s->turn;
			out->unchanged = true;
			r = 1;
		}
	}
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

/* The first name of the turn that no snapshot has: a branch may have used some. */
static unsigned
first_free(const struct sb_host *h, struct sb_hsess *s, unsigned long long turn)
{
	char name[SB_HOST_NAME_MAX + 1];
	unsigned i = 1;

	(void)pthread_mutex_lock(&s->mu);
	do
		turn_name(h, turn, i, name);
	while (sb_hsess_snap_find(s, name) && ++i < UINT_MAX);
	(void)pthread_mutex_unlock(&s->mu);
	return i;
}

static int
take_turn(struct sb_host *h, struct sb_hsess *s, struct sb_host_snapshot *out, struct sb_error *err)
{
	unsigned long long turn = s->turn + 1;
	char name[SB_HOST_NAME_MAX + 1];
	unsigned first = first_free(h, s, turn);
	int r = 0;

	for (unsigned i = first; i < first + TURN_TRIES; i++) {
		turn_name(h, turn, i, name);
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
		r = reuse(h, s, out, err);
	if (r == 0)
		r = take_turn(h, s, out, err);
	open_gate(s);
	if (r > 0) {
		atomic_fetch_add(&h->turns, 1);
		return sb_host_op_done(h, s, 0);
	}
	if (r == 0) {
		atomic_fetch_add(&h->turns, 1);
		sb_host_retention_apply(h, s, SB_HOST_SNAP_TURN);
	}
	return sb_host_op_done(h, s, r);
}
