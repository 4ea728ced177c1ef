/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/hostimpl.h>

#include <stdio.h>
#include <string.h>

#include <host/storage/idcheck.h>

#define CHANGES_MAX 100000

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

/* Pins the snapshot (made now when `name` is empty); its name goes to `out`. Slot held. */
static int
pin(struct sb_host *h, struct sb_hsess *s, const char *name, char out[SB_HOST_NAME_MAX + 1],
	uint64_t *turn, struct sb_error *err)
{
	struct sb_snap *snap;
	int r;

	if (!name || !*name) {
		(void)pthread_mutex_lock(&s->mu);
		(void)snprintf(out, SB_HOST_NAME_MAX + 1, "fork-%llu",
			(unsigned long long)++s->snap_seq);
		(void)pthread_mutex_unlock(&s->mu);
		r = sb_hostimpl_snapshot(h, s, out, SB_HOST_SNAP_FORK, s->turn, NULL, err);
		if (r < 0)
			return sb_wrap(err, r, "snapshot to fork");
	} else {
		(void)snprintf(out, SB_HOST_NAME_MAX + 1, "%s", name);
	}
	snap = sb_hostimpl_visible(s, out, err);
	if (!snap)
		return SB_E_SNAPSHOT_NOT_FOUND;
	(void)pthread_mutex_lock(&s->mu);
	snap->pins++;
	*turn = snap->turn;
	(void)pthread_mutex_unlock(&s->mu);
	return 0;
}

static void
unpin(struct sb_hsess *s, const char *name)
{
	struct sb_snap *snap;

	(void)pthread_mutex_lock(&s->mu);
	snap = sb_hsess_snap_find(s, name);
	if (snap)
		snap->pins--;
	(void)pthread_mutex_unlock(&s->mu);
}

static int
fork_from(struct sb_host *h, struct sb_hsess *s, const char *snap, uint64_t turn,
	struct sb_host_create_opts *o, const struct sb_host_call *call, struct sb_host_session *out,
	struct sb_error *err)
{
	struct sb_host_session labels = { 0 };
	struct sb_hostimpl_origin from = {
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
		r = sb_hostimpl_create(h, o, &from, call, out, err);
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
		r = sb_hostimpl_op_start(h, id, SB_HOST_OP_FORK, true, call, &s, err);
	if (r < 0)
		return r;
	r = pin(h, s, name, snap, &turn, err);
	sb_hsess_leave(s);
	if (r == 0) {
		r = fork_from(h, s, snap, turn, &o, call, out, err);
		unpin(s, snap);
		if (r == 0)
			atomic_fetch_add(&h->forked, 1);
		else
			sb_hostimpl_drop_fork_snap(h, s, snap);
	}
	sb_hsess_unref(s);
	sb_hostimpl_end(h);
	return r;
}

/* The stream brought a snapshot along: it becomes one of the session's. */
static int
adopt_received(struct sb_host *h, struct sb_host_session *out, struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = sb_hostimpl_find(h, out->id, err);
	int r = s ? sb_hsess_enter(s, SB_HOST_OP_SNAPSHOT, NULL, err) : SB_E_SESSION_NOT_FOUND;

	if (r == 0) {
		r = sb_hostimpl_reconcile(h, s, err);
		if (r == 0) {
			sb_host_session_clear(out);
			(void)pthread_mutex_lock(&s->mu);
			r = sb_hsess_describe(s, out, err);
			(void)pthread_mutex_unlock(&s->mu);
		}
		sb_hsess_leave(s);
	}
	if (r < 0)
		sb_host_session_clear(out);
	return r;
}

int
sb_host_session_receive(struct sb_host *h, const struct sb_host_create_opts *opts, int fd,
	const struct sb_host_call *call, struct sb_host_session *out, struct sb_error *err)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_hostimpl_origin from = { .src.fd = fd };
	int r;

	if (opts)
		memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	if (fd < 0)
		return sb_fail(err, SB_E_INVAL, "no stream to receive");
	r = sb_hostimpl_begin(h, true, err);
	if (r < 0)
		return r;
	from.src.quota = o.quota ? o.quota : h->o.default_quota;
	r = sb_hostimpl_need_snapshots(h, err);
	if (r == 0)
		r = sb_hostimpl_create(h, &o, &from, call, out, err);
	if (r == 0)
		r = adopt_received(h, out, err);
	sb_hostimpl_end(h);
	return r;
}

int
sb_host_snapshot_send(struct sb_host *h, const char *id, const char *name, const char *from, int fd,
	const struct sb_host_call *call, struct sb_error *err)
{
	char snap[SB_HOST_NAME_MAX + 1], base[SB_HOST_NAME_MAX + 1];
	struct sb_hsess *s;
	uint64_t turn;
	int r = sb_idcheck_snapshot(name, err);

	if (r == 0 && from)
		r = sb_idcheck_snapshot(from, err);
	if (r == 0)
		r = sb_hostimpl_op_start(h, id, SB_HOST_OP_READ, true, call, &s, err);
	if (r < 0)
		return r;
	/* Pinned, so that a long transfer does not keep the session from working. */
	r = pin(h, s, name, snap, &turn, err);
	if (r == 0 && from) {
		r = pin(h, s, from, base, &turn, err);
		if (r < 0)
			unpin(s, snap);
	}
	sb_hsess_leave(s);
	if (r == 0) {
		r = h->st->ops->send(h->st, id, name, from, fd, call, err);
		unpin(s, snap);
		if (from)
			unpin(s, base);
	}
	sb_hsess_unref(s);
	sb_hostimpl_end(h);
	return r;
}

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
		r = sb_hostimpl_op_start(h, id, SB_HOST_OP_READ, false, call, &s, err);
	if (r < 0)
		return r;
	if (!sb_hostimpl_visible(s, from, err) || (to && !sb_hostimpl_visible(s, to, err)))
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
	return sb_hostimpl_op_done(h, s, r);
}
