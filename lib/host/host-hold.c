/* SPDX-License-Identifier: MIT */
/* Holds: a caller keeps a snapshot from being deleted, dropped or rolled over. */
#include "config.h"

#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host-snapshot.h>
#include <host/storage/idcheck.h>

/* The intent first, so that a hold is in force from the moment anybody may rely on it. */
static int
hold_one(struct sb_host *h, struct sb_hsess *s, const char *name, const char *tag,
	struct sb_error *err)
{
	struct sb_snap *snap = sb_host_snapshot_visible(s, name, err);
	struct sb_hold *hold;
	int r;

	if (!snap)
		return SB_E_SNAPSHOT_NOT_FOUND;
	if (sb_snap_hold_find(snap, tag))
		return sb_fail(err, SB_E_EXISTS, "snapshot %s is held already with tag %s", name,
			tag);
	(void)pthread_mutex_lock(&s->mu);
	r = sb_snap_hold_add(snap, tag, SB_INTENT_MAKE, err);
	if (r == 0)
		r = sb_hostdb_hold_put(h->db, s->uid, name, sb_snap_hold_find(snap, tag), err);
	(void)pthread_mutex_unlock(&s->mu);
	if (r == 0)
		r = h->st->ops->hold(h->st, s->id, name, tag, err);
	if (r == SB_E_EXISTS)
		r = 0;
	(void)pthread_mutex_lock(&s->mu);
	hold = sb_snap_hold_find(snap, tag);
	if (r == 0) {
		hold->intent = SB_INTENT_NONE;
		r = sb_hostdb_hold_put(h->db, s->uid, name, hold, err);
	} else if (hold) {
		(void)sb_hostdb_hold_delete(h->db, s->uid, name, tag, NULL);
		sb_snap_hold_drop(snap, hold);
	}
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

static int
release_one(struct sb_host *h, struct sb_hsess *s, const char *name, const char *tag,
	struct sb_error *err)
{
	struct sb_snap *snap = sb_host_snapshot_visible(s, name, err);
	struct sb_hold *hold;
	int r;

	if (!snap)
		return SB_E_SNAPSHOT_NOT_FOUND;
	hold = sb_snap_hold_find(snap, tag);
	if (!hold)
		return sb_fail(err, SB_E_HOLD_NOT_FOUND, "%s: %s on snapshot %s",
			sb_code_text(SB_E_HOLD_NOT_FOUND), tag, name);
	r = h->st->ops->release(h->st, s->id, name, tag, err);
	if (r == SB_E_HOLD_NOT_FOUND)
		r = 0;
	(void)pthread_mutex_lock(&s->mu);
	if (r == 0)
		r = sb_hostdb_hold_delete(h->db, s->uid, name, tag, err);
	if (r == 0)
		sb_snap_hold_drop(snap, sb_snap_hold_find(snap, tag));
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

int
sb_host_snapshot_hold(struct sb_host *h, const char *id, const char *name, const char *tag,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_hsess *s;
	int r = sb_idcheck_snapshot(name, err);

	if (r == 0)
		r = sb_idcheck_tag(tag, err);
	if (r == 0)
		r = sb_host_op_start(h, id, SB_HOST_OP_SNAPSHOT, true, call, &s, err);
	return r < 0 ? r : sb_host_op_done(h, s, hold_one(h, s, name, tag, err));
}

int
sb_host_snapshot_release(struct sb_host *h, const char *id, const char *name, const char *tag,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_hsess *s;
	int r = sb_idcheck_snapshot(name, err);

	if (r == 0)
		r = sb_idcheck_tag(tag, err);
	if (r == 0)
		r = sb_host_op_start(h, id, SB_HOST_OP_SNAPSHOT, true, call, &s, err);
	return r < 0 ? r : sb_host_op_done(h, s, release_one(h, s, name, tag, err));
}
