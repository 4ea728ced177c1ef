/* SPDX-License-Identifier: MIT */
/* Tells a caller what changed in a workspace since a snapshot. */
#include "config.h"

#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host-snapshot.h>
#include <host/storage/idcheck.h>

#define CHANGES_MAX 100000

int
sb_host_snapshot_diff(struct sb_host *h, const char *id, const char *from, const char *to,
	size_t max, const struct sb_host_call *call, struct sb_host_change **out, size_t *out_n,
	bool *out_more, struct sb_error *err)
{
	sb_auto(sb_changes) struct sb_changes c = { .max = max ? max : CHANGES_MAX };
	struct sb_hsess *s;
	int r = sb_idcheck_snapshot(from, err);

	if (to && !*to)
		to = NULL;
	if (r == 0 && to)
		r = sb_idcheck_snapshot(to, err);
	if (r == 0)
		r = sb_host_op_start(h, id, SB_HOST_OP_READ, false, call, &s, err);
	if (r < 0)
		return r;
	if (!sb_host_snapshot_visible(s, from, err) ||
		(to && !sb_host_snapshot_visible(s, to, err)))
		r = SB_E_SNAPSHOT_NOT_FOUND;
	if (r == 0)
		r = h->st->ops->diff(h->st, id, from, to, call, &c, err);
	if (r == 0) {
		sb_changes_finish(&c);
		*out = c.v;
		*out_n = c.n;
		*out_more = c.more;
		c.v = NULL;
		c.n = 0;
	}
	return sb_host_op_done(h, s, r);
}

const char *
sb_host_change_name(enum sb_host_change_kind k)
{
	static const char *const names[] = { "added", "removed", "modified", "renamed" };

	return (unsigned)k < sizeof names / sizeof names[0] ? names[k] : "unknown";
}
