/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/align.h>

#include <string.h>

#include <base/str.h>
#include <host/grow.h>
#include <host/host-priv.h>
#include <host/host-snapshot.h>
#include <host/retention.h>
#include <host/storage/idcheck.h>

#define NS 1000000000

struct alignment {
	struct sb_host *h;
	struct sb_hsess *s;
	struct sb_snap **v; /* the new order: what the storage has */
	size_t n, cap;
};

static int
push(struct alignment *g, struct sb_snap *snap, struct sb_error *err)
{
	struct sb_snap **v = sb_grow(g->v, g->n, &g->cap, sizeof(*v));

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "snapshots");
	g->v = v;
	v[g->n++] = snap;
	return 0;
}

/* A snapshot without a record, after a lost database or made by hand. */
static struct sb_snap *
adopt(struct alignment *g, const struct sb_storage_entry *e, struct sb_error *err)
{
	uint64_t turn = g->n ? g->v[g->n - 1]->turn : 0;
	enum sb_host_snap_kind kind = sb_host_snapshot_kind_of(g->h, e->snap, &turn);
	struct sb_snap *snap = sb_snap_new(e->snap, kind, err);

	if (!snap)
		return NULL;
	snap->turn = turn;
	snap->created_ns = e->created_s * NS;
	if (sb_hostdb_snap_put(g->h->db, g->s, snap, err) < 0) {
		sb_snap_free(snap);
		return NULL;
	}
	sb_log(&g->h->o.log, SB_LOG_INFO, "host", "session %s: snapshot %s found in the storage",
		g->s->id, snap->name);
	return snap;
}

static bool
listed(const struct alignment *g, const struct sb_snap *snap)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->v[i] == snap)
			return true;
	return false;
}

/* A hold that the storage does not know, after a crash in hold or release, is made again. */
static int
renew_holds(struct sb_host *h, struct sb_hsess *s, struct sb_snap *snap, unsigned have,
	struct sb_error *err)
{
	for (size_t i = 0; i < snap->n_holds; i++) {
		struct sb_hold *hold = &snap->holds[i];
		int r = 0;

		if (hold->intent == SB_INTENT_NONE && have == snap->n_holds)
			continue;
		r = h->st->ops->hold(h->st, s->id, snap->name, hold->tag, err);
		if (r < 0 && r != SB_E_EXISTS)
			return r;
		hold->intent = SB_INTENT_NONE;
		r = sb_hostdb_hold_put(h->db, s->uid, snap->name, hold, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* With `mu` held. */
static int
on_entry(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	struct alignment *g = arg;
	struct sb_snap *snap;
	bool news = false;
	int r;

	if (!e->snap || sb_idcheck_snapshot(e->snap, NULL) < 0 ||
		sb_str_starts(e->snap, "zfs-diff-"))
		return 0;
	snap = sb_hsess_snap_find(g->s, e->snap);
	if (!snap) {
		news = true;
		snap = adopt(g, e, err);
		if (!snap)
			return err && err->code ? err->code : SB_E_NOMEM;
	} else if (snap->intent == SB_INTENT_MAKE) {
		news = true;
		snap->intent = SB_INTENT_NONE;
		r = sb_hostdb_snap_put(g->h->db, g->s, snap, err);
		if (r < 0)
			return r;
	}
	/* One that was on record may be on a branch that the session has left. */
	if (news && snap->kind == SB_HOST_SNAP_TURN && snap->turn > g->s->turn) {
		g->s->turn = snap->turn;
		r = sb_hostdb_snap_put(g->h->db, g->s, snap, err);
		if (r < 0)
			return r;
	}
	if (snap->intent == SB_INTENT_REMOVE)
		g->s->purge = true;
	r = renew_holds(g->h, g->s, snap, e->holds, err);
	return r < 0 ? r : push(g, snap, err);
}

/* Records of what the storage does not have are dropped. With `mu` held. */
static int
forget_missing(struct alignment *g, struct sb_error *err)
{
	struct sb_hsess *s = g->s;

	for (size_t i = 0; i < s->n_snaps; i++) {
		struct sb_snap *snap = s->snaps[i];
		int r;

		if (listed(g, snap))
			continue;
		if (snap->intent == SB_INTENT_NONE)
			sb_log(&g->h->o.log, SB_LOG_WARN, "host",
				"session %s: snapshot %s is gone from the storage", s->id,
				snap->name);
		r = sb_hostdb_snap_delete(g->h->db, s->uid, snap->name, err);
		if (r < 0)
			return r;
		sb_snap_free(snap);
		s->snaps[i] = NULL;
	}
	free(s->snaps);
	s->snaps = g->v;
	s->n_snaps = g->n;
	s->cap_snaps = g->cap;
	g->v = NULL;
	return 0;
}

int
sb_host_align(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	struct alignment g = { .h = h, .s = s };
	struct sb_error why = { 0 };
	int r;

	if (!h->st->ops->snapshots)
		return 0;
	(void)pthread_mutex_lock(&s->mu);
	r = h->st->ops->list(h->st, s->id, on_entry, &g, err);
	if (r == 0)
		r = forget_missing(&g, err);
	(void)pthread_mutex_unlock(&s->mu);
	if (r < 0) {
		/* What was adopted and found no place in the list. */
		for (size_t i = 0; g.v && i < g.n; i++)
			if (sb_hsess_snap_find(s, g.v[i]->name) != g.v[i])
				sb_snap_free(g.v[i]);
		free(g.v);
		return sb_wrap(err, r, "snapshots of session %s", s->id);
	}
	/*
	 * What cannot go now, because a dead fork still needs it or the storage is busy, is no
	 * reason not to start.
	 */
	if (sb_host_retention_purge(h, s, &why) < 0)
		sb_log(&h->o.log, SB_LOG_WARN, "host", "session %s: %s", s->id, why.msg);
	return 0;
}
