/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/recover.h>

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <host/align.h>
#include <host/grow.h>
#include <host/host-destroy.h>
#include <host/host-fork.h>
#include <host/host-map.h>
#include <host/host-network.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host-rollback.h>
#include <host/host-runtime.h>
#include <host/owner.h>
#include <host/storage/idcheck.h>

#define NS 1000000000
#define GONE_MS 5000
#define LOST "its data is missing in the storage"

/* A session as the storage has it. */
struct stored {
	char *id;
	uint64_t quota, used;
	int64_t created_s;
	char *origin_id, *origin_snap;
	bool known; /* the database has it too */
};

struct stored_list {
	struct stored *v;
	size_t n, cap;
};

static void
stored_free(struct stored_list *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->v[i].id);
		free(f->v[i].origin_id);
		free(f->v[i].origin_snap);
	}
	free(f->v);
}

static int
on_entry(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	struct stored_list *f = arg;
	struct stored *n;

	if (e->snap || sb_idcheck_session(e->id, NULL) < 0)
		return 0;
	n = sb_grow(f->v, f->n, &f->cap, sizeof *n);
	if (!n)
		return sb_fail(err, SB_E_NOMEM, "list of the storage");
	f->v = n;
	n += f->n;
	*n = (struct stored){ .quota = e->quota, .used = e->used, .created_s = e->created_s };
	n->id = strdup(e->id);
	if (e->origin_id) {
		n->origin_id = strdup(e->origin_id);
		n->origin_snap = strdup(e->origin_snap);
	}
	f->n++;
	if (!n->id || (e->origin_id && (!n->origin_id || !n->origin_snap)))
		return sb_fail(err, SB_E_NOMEM, "list of the storage");
	return 0;
}

static int
by_id(const void *a, const void *b)
{
	return strcmp(((const struct stored *)a)->id, ((const struct stored *)b)->id);
}

static struct stored *
lookup(struct stored_list *f, const char *id)
{
	struct stored key = { .id = (char *)id };

	return f->n ? bsearch(&key, f->v, f->n, sizeof key, by_id) : NULL;
}

/*
 * A session that a host without isolation made has it from now on where this host isolates: what
 * the operator writes out holds for all of them.
 */
static void
isolate(struct sb_host *h, struct sb_hsess *s)
{
	if (s->runtime != SB_HOST_RUNTIME_NONE || !h->rt->ops->isolates)
		return;
	sb_log(&h->o.log, SB_LOG_WARN, "runtime",
		"session %s was made without isolation: it runs in %s from now on", s->id,
		h->rt->ops->name);
	s->runtime = SB_HOST_RUNTIME_AUTO;
	s->network = SB_HOST_NET_DEFAULT;
}

static int
keep_session(struct sb_hsess *s, void *arg, struct sb_error *err)
{
	int r;

	isolate(arg, s);
	s->rt = sb_host_runtime_get(arg, s->runtime, err);
	s->lasts_ms = ((struct sb_host *)arg)->o.max_session_ms;
	if (s->rt)
		s->network = sb_host_runtime_network(arg, s->rt, s->network);
	r = s->rt ? sb_host_map_add(arg, s, err) : err ? err->code : SB_E_RUNTIME;
	if (s->rt)
		s->runtime = s->rt->ops->kind;
	if (r == 0)
		r = sb_host_network_tell(s, err);
	if (r < 0)
		(void)sb_wrap(err, r, "session %s", s->id);
	sb_hsess_unref(s);
	return r;
}

static int
set_state(struct sb_host *h, struct sb_hsess *s, enum sb_host_state to, const char *why,
	struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->mu);
	free(s->why);
	s->why = why ? strdup(why) : NULL;
	r = sb_host_op_set_state(h, s, to, true, err);
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

/*
 * Half made or half destroyed: gone. What the storage does not let go of stays DESTROYING for the
 * worker.
 */
static int
finish(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r = 0;

	if (s->state == SB_HOST_CREATING)
		r = set_state(h, s, SB_HOST_DESTROYING, NULL, err);
	if (r < 0)
		return r;
	if (sb_host_destroy_finish(h, s, &why) < 0)
		sb_log(&h->o.log, SB_LOG_WARN, "host", "session %s: %s", s->id, why.msg);
	return 0;
}

/* The workspace is there: mount it, bring the records in line, end what was under way. */
static int
revive(struct sb_host *h, struct sb_hsess *s, const struct stored *f, struct sb_error *err)
{
	struct sb_error why = { 0 };
	char *mountpoint = NULL;
	int r = h->st->ops->mount(h->st, s->id, &mountpoint, &why);

	if (r < 0)
		return s->state == SB_HOST_FAILED ? 0 :
						    set_state(h, s, SB_HOST_FAILED, why.msg, err);
	free(s->mountpoint);
	s->mountpoint = mountpoint;
	s->space_used = f->used;
	/* Made by an earlier version; what runs in it now goes on as who it is. */
	if (!(s->rt->ops->holds && s->rt->ops->holds(s->rt, s->id)) &&
		sb_host_owner_claim(h, s, mountpoint, NULL, &why) < 0)
		sb_log(&h->o.log, SB_LOG_ERROR, "host", "session %s: %s", s->id, why.msg);
	/* First, because it may have dropped newer snapshots already whose records it forgets. */
	if (s->state == SB_HOST_ROLLING_BACK &&
		sb_host_rollback_finish(h, s, SB_HOST_FAILED, NULL, &why) < 0)
		sb_log(&h->o.log, SB_LOG_WARN, "host", "session %s: rollback: %s", s->id, why.msg);
	r = sb_host_align(h, s, err);
	if (r < 0)
		return r;
	switch (s->state) {
	case SB_HOST_PAUSING: return set_state(h, s, SB_HOST_ACTIVE, NULL, err);
	case SB_HOST_COOLING:
	case SB_HOST_RESUMING: return set_state(h, s, SB_HOST_PAUSED, NULL, err);
	case SB_HOST_FAILED:
		return s->why && strcmp(s->why, LOST) == 0 ?
			set_state(h, s, SB_HOST_PAUSED, NULL, err) :
			0;
	default: return 0;
	}
}

/* Processes that outlived the last run are stopped or go on, as the state says. */
static int
restore_processes(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	int r = sb_host_proc_restore(h, s, err);

	if (r < 0)
		return r;
	if (s->state == SB_HOST_PAUSED && s->resume && !h->o.no_resume) {
		s->resume = false;
		r = set_state(h, s, SB_HOST_RESUMING, NULL, err);
		if (r == 0)
			r = set_state(h, s, SB_HOST_ACTIVE, NULL, err);
	}
	if (r < 0)
		return r;
	return sb_host_proc_freeze(h, s, s->state == SB_HOST_PAUSED, err);
}

static int
recover_one(struct sb_host *h, struct sb_hsess *s, struct stored_list *all, struct sb_error *err)
{
	struct stored *f = lookup(all, s->id);
	int r;

	if (f)
		f->known = true;
	if (sb_host_state_passing(s->state) || s->state == SB_HOST_DESTROYING)
		atomic_fetch_add(&h->recovered, 1);
	if (s->state == SB_HOST_CREATING || s->state == SB_HOST_DESTROYING) {
		r = sb_host_proc_restore(h, s, err);
		if (r == 0)
			sb_host_proc_kill_all(h, s, 0);
		return r < 0 ? r : finish(h, s, err);
	}
	/* The worker takes away what is left here, and gives back what was claimed. */
	if (s->state == SB_HOST_COLD || s->state == SB_HOST_WARMING) {
		s->cold_rest = f || s->state == SB_HOST_WARMING;
		r = sb_host_proc_restore(h, s, err);
		if (r == 0)
			sb_host_proc_kill_all(h, s, 0);
		return r == 0 && s->state == SB_HOST_WARMING ?
			set_state(h, s, SB_HOST_COLD, NULL, err) :
			r;
	}
	if (!f) {
		sb_log(&h->o.log, SB_LOG_ERROR, "host", "session %s: %s", s->id, LOST);
		return s->state == SB_HOST_FAILED ? 0 : set_state(h, s, SB_HOST_FAILED, LOST, err);
	}
	r = revive(h, s, f, err);
	return r < 0 ? r : restore_processes(h, s, err);
}

/* A workspace the database does not know becomes a paused session. */
static int
adopt(struct sb_host *h, const struct stored *f, struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = sb_hsess_new(f->id, err);
	struct sb_hsess *parent;
	int r;

	if (!s)
		return SB_E_NOMEM;
	s->state = SB_HOST_PAUSED;
	s->rt = h->rt;
	s->lasts_ms = h->o.max_session_ms;
	s->network = sb_host_runtime_network(h, s->rt, SB_HOST_NET_DEFAULT);
	s->runtime = h->rt->ops->kind;
	s->created_ns = f->created_s * NS;
	s->active_ns = sb_host_now_ns();
	s->quota = f->quota;
	s->space_used = f->used;
	parent = f->origin_id ? sb_host_map_get(h, f->origin_id) : NULL;
	if (parent) {
		s->parent_uid = parent->uid;
		s->parent_id = strdup(f->origin_id);
		s->parent_snap = strdup(f->origin_snap);
		if (!s->parent_id || !s->parent_snap)
			return sb_fail(err, SB_E_NOMEM, "session %s", f->id);
	}
	r = h->st->ops->mount(h->st, f->id, &s->mountpoint, err);
	if (r == 0)
		r = sb_hostdb_session_insert(h->db, s, err);
	if (r == 0)
		r = sb_host_owner_claim(h, s, s->mountpoint, NULL, err);
	if (r == 0)
		r = sb_host_map_add(h, s, err);
	if (r == 0)
		r = sb_host_align(h, s, err);
	if (r == 0) {
		atomic_fetch_add(&h->adopted, 1);
		sb_log(&h->o.log, SB_LOG_WARN, "host",
			"session %s: found in the storage, adopted as paused", f->id);
	}
	return r;
}

static int
orphans(struct sb_host *h, struct stored_list *all, struct sb_error *err)
{
	int r = 0;

	/* A wrong state directory must not cost everybody's work. */
	if (h->fresh && all->n > 0 && h->o.orphans == SB_HOST_ORPHANS_DESTROY)
		return sb_fail(err, SB_E_INVAL,
			"the state in %s is new and knows none of the %zu sessions in the storage, "
			"which orphans=destroy would remove: is it the right directory? Else start "
			"with adopt or report",
			h->o.state_dir, all->n);

	/* Parents first, so that a fork finds the session it came from. */
	for (int forks = 0; forks < 2; forks++)
		for (size_t i = 0; i < all->n && r == 0; i++) {
			struct stored *f = &all->v[i];
			struct sb_error why = { 0 };

			if (f->known || (f->origin_id != NULL) != (forks == 1))
				continue;
			if (h->o.orphans == SB_HOST_ORPHANS_ADOPT)
				r = adopt(h, f, err);
			else if (h->o.orphans != SB_HOST_ORPHANS_DESTROY)
				sb_log(&h->o.log, SB_LOG_WARN, "host",
					"%s is in the storage, but no session", f->id);
			else if (h->st->ops->destroy(h->st, f->id, &why) < 0)
				sb_log(&h->o.log, SB_LOG_WARN, "host",
					"%s, which is no session, stays: %s", f->id, why.msg);
			else
				sb_log(&h->o.log, SB_LOG_WARN, "host",
					"%s, which was no session of this host: destroyed", f->id);
		}
	return r;
}

/* Snapshots made for a fork that did not come to be. */
static void
drop_unused_fork_snaps(struct sb_host *h, struct sb_hsess *s)
{
	for (size_t i = s->n_snaps; i-- > 0 && i < s->n_snaps;)
		if (s->snaps[i]->kind == SB_HOST_SNAP_FORK &&
			s->snaps[i]->intent == SB_INTENT_NONE) {
			sb_autofree char *name = strdup(s->snaps[i]->name);

			if (name)
				sb_host_fork_drop_snapshot(h, s, name);
		}
}

static bool
known(const char *session, void *arg)
{
	struct sb_hsess *s = sb_host_map_find(arg, session, NULL);

	sb_hsess_unref(s);
	return s != NULL;
}

/*
 * Tool calls and attached commands do not outlive their host; what they started may have, and so
 * may what nobody knows any more.
 */
static void
kill_left_overs(struct sb_host *h, struct sb_runtime *rt)
{
	static const char kinds[] = { 't', 'a' };
	sb_deadline d = sb_deadline_in(GONE_MS);

	for (size_t i = 0; i < sizeof kinds; i++) {
		char mark[SB_HOST_PROC_MARK_MAX];

		(void)snprintf(mark, sizeof mark, "%s/*/%c*", h->key, kinds[i]);
		while (rt->ops->signal(rt, NULL, mark, 0, SIGKILL) > 0 && !sb_deadline_passed(d))
			(void)usleep(2000);
	}
	if (rt->ops->sweep)
		rt->ops->sweep(rt, known, h);
}

int
sb_host_recover(struct sb_host *h, struct sb_error *err)
{
	sb_autofree struct sb_hsess **v = NULL;
	struct stored_list all = { 0 };
	size_t n = 0;
	int r = sb_hostdb_load(h->db, keep_session, h, err);

	kill_left_overs(h, h->rt);
	for (int i = 0; i < SB_HOST_RUNTIME_AUTO; i++)
		if (h->rts[i])
			kill_left_overs(h, h->rts[i]);
	if (r == 0)
		r = h->st->ops->list(h->st, NULL, on_entry, &all, err);
	if (all.n)
		qsort(all.v, all.n, sizeof all.v[0], by_id);
	if (r == 0)
		r = sb_host_map_all(h, &v, &n, err);
	for (size_t i = 0; i < n; i++)
		if (r == 0)
			r = recover_one(h, v[i], &all, err);
	if (r == 0)
		r = orphans(h, &all, err);
	if (r == 0)
		r = h->st->ops->sweep(h->st, err);
	if (r > 0)
		r = 0;
	for (size_t i = 0; i < n; i++) {
		if (r == 0 && !v[i]->gone)
			drop_unused_fork_snaps(h, v[i]);
		sb_hsess_unref(v[i]);
	}
	stored_free(&all);
	return r;
}
