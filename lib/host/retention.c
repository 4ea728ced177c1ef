/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/retention.h>

#include <host/host-map.h>
#include <host/host-priv.h>
#include <host/worker.h>

/* More of them make a chain longer that a deep pause reads; fewer make one write more anew. */
#define KEEP_COLD 8

/* The first of the list with that intent, with the slot held. */
static struct sb_snap *
first_removed(struct sb_hsess *s)
{
	struct sb_snap *found = NULL;

	(void)pthread_mutex_lock(&s->mu);
	for (size_t i = 0; i < s->n_snaps && !found; i++)
		if (s->snaps[i]->intent == SB_INTENT_REMOVE)
			found = s->snaps[i];
	if (!found)
		s->purge = false;
	(void)pthread_mutex_unlock(&s->mu);
	return found;
}

int
sb_host_retention_purge(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	struct sb_snap *snap;

	while ((snap = first_removed(s))) {
		struct sb_error why = { 0 };
		int r = h->st->ops->snapshot_delete(h->st, s->id, snap->name, &why);

		if (r == SB_E_SNAPSHOT_NOT_FOUND)
			r = 0;
		(void)pthread_mutex_lock(&s->mu);
		if (r == 0)
			r = sb_hostdb_snap_delete(h->db, s->uid, snap->name, &why);
		if (r == 0) {
			atomic_fetch_add(&h->snapshots_deleted, 1);
			sb_log(&h->o.log, SB_LOG_INFO, "host", "session %s: snapshot %s: deleted",
				s->id, snap->name);
			sb_host_event_note(h->events, "snapshot.deleted", s->id, snap->name,
				s->state);
			sb_hsess_snap_drop(s, snap);
		} else if (r == SB_E_SNAPSHOT_IN_USE || r == SB_E_SNAPSHOT_HELD) {
			/* Somebody outside needs it: it stays and is seen again. */
			snap->intent = SB_INTENT_NONE;
			(void)sb_hostdb_snap_put(h->db, s, snap, NULL);
		}
		(void)pthread_mutex_unlock(&s->mu);
		if (r < 0) {
			if (err)
				*err = why;
			return r;
		}
	}
	return 0;
}

/* Marks the snapshot for removal, with the slot held. */
int
sb_host_retention_mark(struct sb_host *h, struct sb_hsess *s, struct sb_snap *snap,
	struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->mu);
	snap->intent = SB_INTENT_REMOVE;
	r = sb_hostdb_snap_put(h->db, s, snap, err);
	if (r < 0)
		snap->intent = SB_INTENT_NONE;
	else
		s->purge = true;
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

void
sb_host_retention_apply(struct sb_host *h, struct sb_hsess *s, enum sb_host_snap_kind kind)
{
	const unsigned limits[SB_HOST_SNAP_KINDS] = { [SB_HOST_SNAP_TURN] = h->o.keep_turn,
		[SB_HOST_SNAP_NAMED] = h->o.keep_named,
		[SB_HOST_SNAP_TOOL] = h->o.keep_tool,
		[SB_HOST_SNAP_COLD] = KEEP_COLD };
	unsigned have = 0;
	bool any = false;

	if (limits[kind] == 0)
		return;
	for (size_t i = s->n_snaps; i-- > 0;) {
		struct sb_snap *snap = s->snaps[i];
		bool over, free_to_go;

		(void)pthread_mutex_lock(&s->mu);
		over = snap->kind == kind && snap->intent == SB_INTENT_NONE &&
			++have > limits[kind];
		free_to_go = over && snap->pins == 0 && sb_snap_holds(snap) == 0;
		(void)pthread_mutex_unlock(&s->mu);
		if (free_to_go && sb_host_map_forks(h, s->uid, snap->name) == 0 &&
			sb_host_retention_mark(h, s, snap, NULL) == 0)
			any = true;
	}
	if (!any)
		return;
	(void)pthread_mutex_lock(&h->mu);
	any = h->worker_on && !h->closing;
	(void)pthread_mutex_unlock(&h->mu);
	if (any)
		sb_host_worker_poke(h);
	else
		(void)sb_host_retention_purge(h, s, NULL);
}
