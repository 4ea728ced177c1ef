/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/hostimpl.h>

int
sb_hostimpl_need_snapshots(const struct sb_host *h, struct sb_error *err)
{
	return h->st->ops->snapshots ?
		0 :
		sb_fail(err, SB_E_NO_SNAPSHOTS, "%s", sb_code_text(SB_E_NO_SNAPSHOTS));
}

int
sb_hostimpl_op_start(struct sb_host *h, const char *id, enum sb_host_op op, bool work,
	const struct sb_host_call *call, struct sb_hsess **out, struct sb_error *err)
{
	struct sb_error why = { 0 };
	struct sb_hsess *s = NULL;
	int r = sb_hostimpl_begin(h, work, &why);

	if (r == 0) {
		s = sb_hostimpl_find(h, id, &why);
		r = s ? 0 : why.code;
		/* Turns go on without snapshots. */
		if (r == 0 && op != SB_HOST_OP_TURN && op != SB_HOST_OP_LAUNCH)
			r = sb_hostimpl_need_snapshots(h, &why);
		if (r == 0)
			r = sb_hsess_enter(s, op, call, &why);
		if (r < 0) {
			sb_hsess_unref(s);
			sb_hostimpl_end(h);
		}
	}
	if (r < 0 && err)
		*err = why;
	if (r == 0)
		*out = s;
	return r;
}

int
sb_hostimpl_op_done(struct sb_host *h, struct sb_hsess *s, int r)
{
	sb_hsess_leave(s);
	sb_hsess_unref(s);
	sb_hostimpl_end(h);
	return r;
}

struct sb_snap *
sb_hostimpl_visible(struct sb_hsess *s, const char *name, struct sb_error *err)
{
	struct sb_snap *snap;

	(void)pthread_mutex_lock(&s->mu);
	snap = sb_hsess_snap_find(s, name);
	if (!snap || snap->intent != SB_INTENT_NONE) {
		(void)sb_fail(err, SB_E_SNAPSHOT_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SNAPSHOT_NOT_FOUND), name);
		snap = NULL;
	}
	(void)pthread_mutex_unlock(&s->mu);
	return snap;
}

void
sb_host_snapshot_clear(struct sb_host_snapshot *s)
{
	if (!s)
		return;
	free(s->dataset);
	*s = (struct sb_host_snapshot){ 0 };
}

void
sb_host_snapshots_free(struct sb_host_snapshot *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sb_host_snapshot_clear(&v[i]);
	free(v);
}

const char *
sb_host_snap_kind_name(enum sb_host_snap_kind k)
{
	static const char *const names[SB_HOST_SNAP_KINDS] = { "turn", "named", "tool", "fork" };

	return (unsigned)k < SB_HOST_SNAP_KINDS ? names[k] : "unknown";
}
