/* SPDX-License-Identifier: MIT */
/* Rollback, names and holds of the overlay storage. */
#include "config.h"

#include <host/storage/storage-overlay-priv.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cleanup.h>

static int
no_snapshot(const char *snap, struct sb_error *err)
{
	return sb_fail(err, SB_E_SNAPSHOT_NOT_FOUND, "%s: %s",
		sb_code_text(SB_E_SNAPSHOT_NOT_FOUND), snap);
}

/* The session and its snapshot. With `mu` held. */
static int
find_both(struct sb_storage_overlay *o, const char *id, const char *snap,
	struct sb_overlay_session **se, struct sb_overlay_snap **sn, struct sb_error *err)
{
	*se = sb_storage_overlay_find(o, id, err);
	if (!*se)
		return SB_E_NOTFOUND;
	*sn = sb_overlay_state_snap(*se, snap);
	return *sn ? 0 : no_snapshot(snap, err);
}

/* The snapshots after `sn`, into `rec`, when they are to go. With `mu` held. */
static int
find_later(const struct sb_overlay_session *se, const struct sb_overlay_snap *sn,
	struct sb_overlay_rec *rec, struct sb_error *err)
{
	bool after = false;

	rec->names = calloc(se->n_snaps + 1, sizeof *rec->names);
	if (!rec->names)
		return sb_fail(err, SB_E_NOMEM, "rollback");
	for (size_t i = 0; i < se->n_snaps; i++) {
		const struct sb_overlay_snap *x = se->snaps[i];

		if (after && x->holds.n > 0)
			return sb_fail(err, SB_E_SNAPSHOT_HELD,
				"%s: %s is newer than %s and would be lost",
				sb_code_text(SB_E_SNAPSHOT_HELD), x->name, sn->name);
		if (after)
			rec->names[rec->n_names++] = x->name;
		after |= x == sn;
	}
	return 0;
}

static int
roll(struct sb_storage_overlay *o, struct sb_overlay_session *se, struct sb_overlay_node *node,
	const char *snap, struct sb_overlay_rec *rec, const struct sb_storage_live *live,
	struct sb_error *err)
{
	sb_auto(sb_storage_overlay_plan) struct sb_storage_overlay_plan p = { .base = -1 };
	int base = sb_storage_overlay_base_of(o, se, err);
	int r = base < 0 ? base : sb_storage_overlay_plan(o, node, base, -1, &p, err);

	if (r == 0)
		r = sb_storage_overlay_take_away(o, se, live, true, err);
	if (r == 0) {
		rec->kind = SB_OVERLAY_ROLL;
		rec->sid = se->id;
		rec->head = snap;
		rec->node = node ? node->id : 0;
		rec->upper = p.stack[0];
		rec->n_stack = p.n;
		memcpy(rec->stack, p.stack, p.n * sizeof p.stack[0]);
		(void)pthread_mutex_lock(&o->mu);
		r = sb_storage_overlay_record(o, rec, err);
		(void)pthread_mutex_unlock(&o->mu);
		if (r < 0) {
			char *path = NULL;

			(void)sb_storage_overlay_mount(&o->st, se->id, &path, NULL);
			free(path);
			(void)sb_storage_overlay_give_back(o, se, live, NULL);
		}
	}
	if (r < 0) {
		sb_storage_overlay_discard(o, p.stack[0]);
		return r;
	}
	r = sb_storage_overlay_enter(o, se, &p, err);
	if (r == 0)
		r = sb_storage_overlay_give_back(o, se, live, err);
	return r;
}

int
sb_storage_overlay_rollback(struct sb_storage *st, const char *id, const char *snap,
	bool drop_later, const struct sb_storage_live *live, struct sb_error *err)
{
	struct sb_storage_overlay *o = (struct sb_storage_overlay *)st;
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	struct sb_overlay_session *se;
	struct sb_overlay_snap *sn;
	struct sb_overlay_node *node = NULL;
	int r = rec ? 0 : sb_fail(err, SB_E_NOMEM, "rollback");

	(void)pthread_mutex_lock(&o->mu);
	if (r == 0)
		r = find_both(o, id, snap, &se, &sn, err);
	if (r == 0 && drop_later)
		r = find_later(se, sn, rec, err);
	if (r == 0) {
		node = sn->node;
		sb_overlay_node_pin(node);
	}
	(void)pthread_mutex_unlock(&o->mu);
	if (r == 0) {
		r = roll(o, se, node, snap, rec, live, err);
		if (r == 0)
			r = sb_storage_overlay_commit(o, err);
		(void)pthread_mutex_lock(&o->mu);
		sb_overlay_node_unpin(&o->state.tree, node);
		(void)pthread_mutex_unlock(&o->mu);
		sb_storage_overlay_poke(o);
	}
	if (rec)
		free(rec->names);
	return r;
}

/* A record about one snapshot, committed. */
static int
about_snap(struct sb_storage_overlay *o, enum sb_overlay_kind kind, const char *id,
	const char *snap, const char *tag, struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	int r;

	if (!rec)
		return sb_fail(err, SB_E_NOMEM, "snapshot %s", snap);
	rec->kind = (uint8_t)kind;
	rec->sid = id;
	rec->name = snap;
	rec->tag = tag;
	r = sb_storage_overlay_record(o, rec, err);
	(void)pthread_mutex_unlock(&o->mu);
	if (r == 0)
		r = sb_storage_overlay_commit(o, err);
	(void)pthread_mutex_lock(&o->mu);
	return r;
}

int
sb_storage_overlay_delete(struct sb_storage *st, const char *id, const char *snap,
	struct sb_error *err)
{
	struct sb_storage_overlay *o = (struct sb_storage_overlay *)st;
	struct sb_overlay_session *se;
	struct sb_overlay_snap *sn;
	int r;

	(void)pthread_mutex_lock(&o->mu);
	r = find_both(o, id, snap, &se, &sn, err);
	if (r == SB_E_NOTFOUND)
		r = no_snapshot(snap, err);
	if (r == 0 && sn->holds.n > 0)
		r = sb_fail(err, SB_E_SNAPSHOT_HELD, "%s: %s", sb_code_text(SB_E_SNAPSHOT_HELD),
			snap);
	if (r == 0)
		r = about_snap(o, SB_OVERLAY_DROP, id, snap, NULL, err);
	(void)pthread_mutex_unlock(&o->mu);
	sb_storage_overlay_poke(o);
	return r;
}

static bool
holds(const struct sb_overlay_snap *sn, const char *tag)
{
	for (size_t i = 0; i < sn->holds.n; i++)
		if (strcmp(sn->holds.v[i], tag) == 0)
			return true;
	return false;
}

int
sb_storage_overlay_hold(struct sb_storage *st, const char *id, const char *snap, const char *tag,
	struct sb_error *err)
{
	struct sb_storage_overlay *o = (struct sb_storage_overlay *)st;
	struct sb_overlay_session *se;
	struct sb_overlay_snap *sn;
	int r;

	(void)pthread_mutex_lock(&o->mu);
	r = find_both(o, id, snap, &se, &sn, err);
	if (r == SB_E_NOTFOUND)
		r = no_snapshot(snap, err);
	if (r == 0 && holds(sn, tag))
		r = sb_fail(err, SB_E_EXISTS, "snapshot %s is held already with tag %s", snap, tag);
	if (r == 0)
		r = about_snap(o, SB_OVERLAY_HOLD, id, snap, tag, err);
	(void)pthread_mutex_unlock(&o->mu);
	return r;
}

int
sb_storage_overlay_release(struct sb_storage *st, const char *id, const char *snap, const char *tag,
	struct sb_error *err)
{
	struct sb_storage_overlay *o = (struct sb_storage_overlay *)st;
	struct sb_overlay_session *se;
	struct sb_overlay_snap *sn;
	int r;

	(void)pthread_mutex_lock(&o->mu);
	r = find_both(o, id, snap, &se, &sn, err);
	if (r == SB_E_NOTFOUND)
		r = no_snapshot(snap, err);
	if (r == 0 && !holds(sn, tag))
		r = sb_fail(err, SB_E_HOLD_NOT_FOUND, "%s: %s on snapshot %s",
			sb_code_text(SB_E_HOLD_NOT_FOUND), tag, snap);
	if (r == 0)
		r = about_snap(o, SB_OVERLAY_RELEASE, id, snap, tag, err);
	(void)pthread_mutex_unlock(&o->mu);
	return r;
}
