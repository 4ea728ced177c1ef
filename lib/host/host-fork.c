/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-fork.h>

#include <stdio.h>
#include <string.h>

#include <host/host-map.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host-session.h>
#include <host/host-snapshot.h>
#include <host/retention.h>
#include <host/storage/idcheck.h>
#include <host/worker.h>

/* The source's labels, for a fork that gives none of its own. */
static int
inherit_labels(struct sb_hsess *s, struct sb_host_create_opts *o, struct sb_host_session *hold,
	struct sb_error *err)
{
	int r;

	if (o->n_labels > 0)
		return 0;
	(void)pthread_mutex_lock(&s->mu);
	r = sb_hsess_describe(s, hold, err);
	(void)pthread_mutex_unlock(&s->mu);
	if (r == 0) {
		o->labels = hold->labels;
		o->n_labels = hold->n_labels;
	}
	return r;
}

static int
fork_from(struct sb_host *h, struct sb_hsess *s, const char *snap, uint64_t turn,
	struct sb_host_create_opts *o, const struct sb_host_call *call, struct sb_host_session *out,
	struct sb_error *err)
{
	struct sb_host_session labels = { 0 };
	struct sb_host_origin from = {
		.src = { .from_id = s->id,
			.from_snap = snap,
			.fd = -1,
			.quota = o->quota ? o->quota : h->o.default_quota },
		.parent = s,
		.parent_snap = snap,
		.turn = turn,
	};
	int r = inherit_labels(s, o, &labels, err);

	if (r == 0)
		r = sb_host_session_make(h, o, &from, call, out, err);
	sb_host_session_clear(&labels);
	return r;
}

int
sb_host_session_fork(struct sb_host *h, const char *id, const char *name,
	const struct sb_host_create_opts *opts, const struct sb_host_call *call,
	struct sb_host_session *out, struct sb_error *err)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	char snap[SB_HOST_NAME_MAX + 1];
	struct sb_hsess *s;
	uint64_t turn;
	int r = 0;

	if (opts)
		memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	if (name && *name)
		r = sb_idcheck_snapshot(name, err);
	if (r == 0 && o.id && *o.id)
		r = sb_idcheck_session(o.id, err);
	if (r == 0)
		r = sb_host_op_start(h, id, SB_HOST_OP_FORK, true, call, &s, err);
	if (r < 0)
		return r;
	r = sb_host_snapshot_pin(h, s, name, snap, &turn, err);
	sb_hsess_leave(s);
	if (r == 0) {
		r = fork_from(h, s, snap, turn, &o, call, out, err);
		sb_host_snapshot_unpin(s, snap);
		if (r == 0)
			atomic_fetch_add(&h->forked, 1);
		else
			sb_host_fork_drop_snapshot(h, s, snap);
	}
	sb_hsess_unref(s);
	sb_host_call_end(h);
	return r;
}

/* A snapshot made only to be forked goes with its last fork. With the slot held. */
static void
drop_fork_snap(struct sb_host *h, struct sb_hsess *p, const char *name)
{
	struct sb_snap *snap;

	(void)pthread_mutex_lock(&p->mu);
	snap = sb_hsess_snap_find(p, name);
	if (snap && snap->pins == 0 && snap->kind == SB_HOST_SNAP_FORK &&
		snap->intent == SB_INTENT_NONE && sb_snap_holds(snap) == 0) {
		snap->intent = SB_INTENT_REMOVE;
		(void)sb_hostdb_snap_put(h->db, p, snap, NULL);
		p->purge = true;
	}
	(void)pthread_mutex_unlock(&p->mu);
	(void)sb_host_retention_purge(h, p, NULL);
}

void
sb_host_fork_drop_snapshot(struct sb_host *h, struct sb_hsess *p, const char *name)
{
	if (sb_host_map_forks(h, p->uid, name) > 0 ||
		sb_hsess_enter(p, SB_HOST_OP_SNAPSHOT, NULL, NULL) < 0)
		return;
	if (sb_host_map_forks(h, p->uid, name) == 0)
		drop_fork_snap(h, p, name);
	sb_hsess_leave(p);
}

void
sb_host_fork_forget(struct sb_host *h, const struct sb_hsess *fork)
{
	sb_auto(sb_hsess) struct sb_hsess *p = NULL;

	if (!fork->parent_snap)
		return;
	if (h->st->ops->sweep(h->st, NULL) != 0)
		sb_host_worker_poke(h);
	p = sb_host_map_find_uid(h, fork->parent_uid);
	if (p)
		sb_host_fork_drop_snapshot(h, p, fork->parent_snap);
}
