/* SPDX-License-Identifier: MIT */
/* The undo of a session's last run: compares, plans and commits on the local side. */
#include "config.h"

#include <sbsync/session.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/str.h>
#include <sync/plan/reconcile.h>
#include <sync/run/run-guard.h>
#include <sync/run/sync-result.h>
#include <sync/session/session-conflicts.h>
#include <sync/session/session-local.h>
#include <sync/session/session-store.h>
#include <sync/session/session-undo.h>
#include <sync/session/session-hold.h>
#include <sync/tree/diff.h>

/*
 * Puts what is missing on the way to `path`: a place for an entry in a tree that has lost its
 * directory since.
 */
static int
make_parents(struct sb_manifest *m, const char *path, struct sb_error *err)
{
	sb_autofree char *part = strdup(path);
	const struct sb_entry dir = { .type = SB_ENTRY_DIR, .mode = 0755 };

	if (!part)
		return sb_fail(err, SB_E_NOMEM, "undo: out of memory");
	for (char *slash = strchr(part, '/'); slash; slash = strchr(slash + 1, '/')) {
		const struct sb_entry *e;

		*slash = 0;
		e = sb_manifest_find(m, part);
		if (e && e->type != SB_ENTRY_DIR) {
			(void)sb_manifest_remove(m, part);
			e = NULL;
		}
		if (!e && !sb_manifest_put(m, part, &dir, NULL, err))
			return SB_E_NOMEM;
		*slash = '/';
	}
	return 0;
}

/* Makes the changed paths what the difference says, whatever is there now. */
static int
force(struct sb_manifest *m, const struct sb_diff *d, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->n; i++) {
		const struct sb_change *c = &d->v[i];
		const struct sb_entry *old = sb_manifest_find(m, c->path);
		struct sb_entry e = c->entry, *put;

		if (c->del || (old && (old->type == SB_ENTRY_DIR) != (e.type == SB_ENTRY_DIR)))
			(void)sb_manifest_remove(m, c->path);
		if (c->del)
			continue;
		r = make_parents(m, c->path, err);
		put = r == 0 ? sb_manifest_put(m, c->path, &e, c->target, err) : NULL;
		if (r == 0)
			r = !put          ? SB_E_NOMEM :
				c->leader ? sb_manifest_set_link(m, put, c->leader, err) :
					    0;
	}
	return r;
}

/* Contents by digest, as far as the root has them under any name. */
struct known {
	struct sb_digest *v;
	size_t n, cap;
	struct sb_error *err;
};

static int
know(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct known *k = arg;

	(void)path;
	(void)len;
	if (e->type != SB_ENTRY_FILE)
		return 0;
	if (k->n == k->cap) {
		size_t cap = k->cap ? k->cap * 2 : 1024;
		struct sb_digest *v = realloc(k->v, cap * sizeof *v);

		if (!v)
			return sb_fail(k->err, SB_E_NOMEM, "undo: out of memory");
		k->v = v;
		k->cap = cap;
	}
	k->v[k->n++] = e->digest;
	return 0;
}

static int
by_digest(const void *a, const void *b)
{
	return memcmp(((const struct sb_digest *)a)->b, ((const struct sb_digest *)b)->b, 16);
}

/*
 * Brings the contents the changes need into the stage; what is not kept any more stays as it is
 * now, and is told.
 */
static int
bring_contents(struct sb_session_local *x, struct sb_manifest *target,
	const struct sb_diff *changes, struct sb_error *err)
{
	struct sb_store *store = sb_replica_store(x->rep);
	struct known k = { .err = err };
	int r = sb_manifest_walk(x->rep->scan.manifest, know, &k);

	if (r == 0 && k.n)
		qsort(k.v, k.n, sizeof *k.v, by_digest);
	for (size_t i = 0; r == 0 && i < changes->n; i++) {
		const struct sb_change *c = &changes->v[i];
		const struct sb_entry *now = sb_manifest_find(x->rep->scan.manifest, c->path);
		sb_auto(sb_buf) struct sb_buf b = { 0 };
		struct sb_digest d;

		if (c->del || c->entry.type != SB_ENTRY_FILE || !c->entry.size ||
			(k.n && bsearch(&c->entry.digest, k.v, k.n, sizeof *k.v, by_digest)))
			continue;
		if (store && sb_store_get(store, &c->entry.digest, &b, NULL) == 0) {
			r = sb_session_local_offer(x, b.data, b.len, &d, err);
			continue;
		}
		(void)sb_manifest_remove(target, c->path);
		r = sb_sync_result_note(&x->res->errors, c->path, NULL,
			"its content is not kept any more: left as it is", err);
		if (r == 0 && now)
			r = sb_manifest_graft(target, c->path, now, err);
	}
	free(k.v);
	return r;
}

static int
undo_pair(struct sb_session_local *x, const struct sb_session_undo *u, struct sb_error *err)
{
	struct sb_reconcile_opts o = SB_RECONCILE_OPTS_INIT;
	struct sb_manifest *now = x->rep->scan.manifest;
	struct sb_run_guard here;
	sb_auto(sb_manifest) struct sb_manifest *left = sb_manifest_copy(now, err), *before = NULL,
						*target = NULL;
	sb_auto(sb_reconciled) struct sb_reconciled rec = { 0 };
	int r = left ? 0 : SB_E_NOMEM;

	sb_step_next(x->clock, SB_STEP_PLAN);
	/*
	 * What the sync left behind, and what was there before it; where it did nothing, both are
	 * as it is now.
	 */
	for (size_t i = 0; r == 0 && i < u->n; i++)
		r = force(left, &u->layers[i].forward, err);
	if (r == 0 && !(before = sb_manifest_copy(left, err)))
		r = SB_E_NOMEM;
	for (size_t i = u->n; r == 0 && i-- > 0;)
		r = force(before, &u->layers[i].reverse, err);
	if (r == 0)
		r = sb_manifest_finish(left, err);
	if (r == 0)
		r = sb_manifest_finish(before, err);
	if (r < 0)
		return r;
	o.direction = SB_FROM_RUNTIME;
	o.label = x->s->name;
	o.word = "undo-conflict";
	o.trust_git_config = x->o->trust_git_config;
	o.trust_project_files = true;
	o.files = sb_run_guard_files(&here, x->rep);
	o.unseen[0] = x->rep->scan.skipped;
	o.n_unseen[0] = x->rep->scan.n_skipped;
	r = sb_reconcile_trees(left, now, before, &o, &rec, err);
	if (r == 0 && !(target = sb_manifest_copy(now, err)))
		r = SB_E_NOMEM;
	if (r == 0)
		r = sb_diff_apply(target, &rec.local, err);
	if (r == 0)
		r = bring_contents(x, target, &rec.local, err);
	if (r == 0)
		r = sb_manifest_finish(target, err);
	for (size_t i = 0; r == 0 && i < rec.n_conflicts; i++)
		r = sb_sync_result_note(rec.conflicts[i].saved_as ? &x->res->conflicts :
								    &x->res->skipped,
			rec.conflicts[i].path, rec.conflicts[i].saved_as,
			rec.conflicts[i].kind == SB_CONFLICT_EDIT ||
					rec.conflicts[i].kind == SB_CONFLICT_TYPE ?
				"edited since the sync that is undone" :
				sb_reconcile_conflict_text(rec.conflicts[i].kind),
			err);
	if (r == 0 && !x->o->dry_run)
		sb_session_conflicts_add(x->dirfd, x->s->pairs[x->pair].local, &rec, left);
	return r < 0 ? r : sb_session_local_apply(x, target, err);
}

/* The newest run of all roots. */
static int
newest(int dirfd, const struct sb_session *s, uint64_t *out, struct sb_error *err)
{
	*out = 0;
	for (size_t i = 0; i < s->n_pairs; i++) {
		sb_auto(sb_session_undo) struct sb_session_undo u = { 0 };
		int r = sb_session_undo_load(dirfd, i, &u, err);

		if (r < 0 && r != SB_E_NOTFOUND)
			return r;
		if (r == 0 && u.stamp > *out)
			*out = u.stamp;
	}
	return *out ? 0 :
		      sb_fail(err, SB_E_NOTFOUND,
			      "session '%s' has nothing to undo: no sync has changed %s yet",
			      s->name, s->pairs[0].local);
}

static int
undo_held(struct sb_session_held *h, struct sb_session *s, const struct sb_sync_opts *opts,
	struct sb_sync_result *res, struct sb_error *err)
{
	uint64_t last, stamp = sb_session_stamp();
	int r = newest(h->dirfd, s, &last, err);

	for (size_t i = 0; r == 0 && i < s->n_pairs; i++) {
		struct sb_step_clock clock;
		struct sb_session_local x = { .s = s,
			.o = opts,
			.dirfd = h->dirfd,
			.pair = i,
			.stamp = stamp,
			.clock = &clock,
			.res = res,
			.own = true };
		sb_auto(sb_session_undo) struct sb_session_undo u = { 0 };

		if (sb_session_undo_load(h->dirfd, i, &u, NULL) < 0 || u.stamp != last)
			continue;
		r = sb_session_local_open(&x, err);
		if (r == 0)
			r = undo_pair(&x, &u, err);
		sb_session_local_close(&x);
	}
	if (!opts->dry_run && r != SB_E_NOTFOUND)
		sb_session_log(h->dirfd, "undo", r, err, res);
	return r;
}

int
sb_session_undo(struct sb_session *s, const struct sb_sync_opts *opts, struct sb_sync_result *res,
	struct sb_error *err)
{
	struct sb_session_held h;
	int64_t start = sb_now_ms();
	int r;

	memset(res, 0, sizeof *res);
	res->direction = "local";
	res->reason = "undo";
	r = sb_session_hold(opts->state_dir, s->name, false, &h, err);
	if (r < 0)
		return r;
	r = undo_held(&h, s, opts, res, err);
	sb_session_let_go(&h);
	res->duration_ms = sb_now_ms() - start;
	return r;
}
