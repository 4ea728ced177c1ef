/* SPDX-License-Identifier: MIT */
/* The thread of a view: lists all records, then follows the changes. */
#include "config.h"

#include <fleet/fleet-view-priv.h>

#include <poll.h>
#include <string.h>

#define PAUSE_MS 500

/* One round of listing and watching. */
struct round {
	struct sb_fleet_view *v;
	sb_deadline relist; /* the watch ends then, to list again */
};

static const char *
behind_prefix(const struct sb_fleet_view *v, const char *key)
{
	return key + strlen(v->prefix);
}

static void
note(struct sb_fleet_view *v, bool listed, bool heard, const struct sb_error *why)
{
	(void)pthread_mutex_lock(&v->mu);
	v->listed = v->listed || listed;
	if (heard)
		v->heard_ms = sb_now_ms();
	if (why)
		v->why = *why;
	(void)pthread_cond_broadcast(&v->turn);
	(void)pthread_mutex_unlock(&v->mu);
}

static int
on_listed(const struct sb_etcd_kv *kv, void *arg, struct sb_error *err)
{
	struct round *g = arg;

	(void)err;
	sb_fleet_view_take(g->v, behind_prefix(g->v, kv->key), kv->value, kv->len, kv->mod_rev);
	return 0;
}

/* Ends the watch when it is time to list again. */
static int
still(struct round *g, struct sb_error *err)
{
	note(g->v, false, true, NULL);
	return sb_deadline_passed(g->relist) ? sb_fail(err, SB_E_CHANGED, "time to list again") : 0;
}

static int
on_change(bool deleted, const struct sb_etcd_kv *kv, void *arg, struct sb_error *err)
{
	struct round *g = arg;

	sb_fleet_view_take(g->v, behind_prefix(g->v, kv->key), deleted ? NULL : kv->value, kv->len,
		kv->mod_rev);
	if (g->v->o.on_change)
		g->v->o.on_change(g->v->o.arg);
	return still(g, err);
}

static int
on_line(void *arg, struct sb_error *err)
{
	return still(arg, err);
}

/* Lists, then watches until something makes it list again. */
static int
follow(struct sb_fleet_view *v, struct sb_error *err)
{
	struct sb_etcd_watch w = SB_ETCD_WATCH_INIT;
	struct round g = { .v = v, .relist = sb_deadline_in(v->o.relist_ms) };
	int64_t rev;
	int r;

	sb_fleet_view_sweep_begin(v);
	r = sb_etcd_list(v->o.etcd, v->prefix, on_listed, &g, &rev, v->stop, err);
	if (r < 0)
		return r;
	sb_fleet_view_sweep_end(v, rev);
	note(v, true, true, NULL);
	if (v->o.on_change)
		v->o.on_change(v->o.arg);
	w.prefix = v->prefix;
	w.from = rev + 1;
	w.on_change = on_change;
	w.on_line = on_line;
	w.arg = &g;
	w.quiet_ms = v->o.quiet_ms;
	return sb_etcd_watch(v->o.etcd, &w, v->stop, err);
}

void *
sb_fleet_view_watch_main(void *arg)
{
	struct sb_fleet_view *v = arg;

	while (!sb_cancel_requested(v->stop)) {
		struct pollfd fd = { .fd = sb_cancel_fd(v->stop), .events = POLLIN };
		struct sb_error why = { 0 };
		int r = follow(v, &why);

		if (r == SB_E_CHANGED || sb_cancel_requested(v->stop))
			continue;
		note(v, false, false, &why);
		sb_log(&v->o.log, SB_LOG_WARN, "fleet", "records cannot be followed: %s", why.msg);
		(void)poll(&fd, 1, PAUSE_MS);
	}
	return NULL;
}
