/* SPDX-License-Identifier: MIT */
/* The undo of a session's last run: compares, plans and commits on the local side. */
#include "config.h"

#include <sbsync/session.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/str.h>
#include <sync/plan/reconcile.h>
#include <sync/run/run-guard.h>
#include <sync/run/sync-result.h>
#include <sync/session/session-conflicts.h>
#include <sync/session/session-local.h>
#include <sync/session/session-log.h>
#include <sync/session/session-store.h>
#include <sync/session/session-undo.h>
#include <sync/session/session-hold.h>
#include <sync/tree/diff.h>

/*
 * Puts what is missing on the way to `path`: a place for an entry in a tree that has lost its
 * directory since.
 */
static int
make_parents(struct sb_manifest *m, const struct sb_manifest *base, const char *path,
	struct sb_error *err)
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
			const struct sb_entry *all = base ? sb_manifest_find(base, part) : NULL;

			(void)sb_manifest_remove(m, part);
			e = NULL;
			/* Something else took its place: it comes back with all that was in it. */
			if (all && all->type == SB_ENTRY_DIR) {
				if (sb_manifest_graft(m, part, all, err) < 0)
					return SB_E_NOMEM;
				e = all;
			}
		}
		if (!e && !sb_manifest_put(m, part, &dir, NULL, err))
			return SB_E_NOMEM;
		*slash = '/';
	}
	return 0;
}

/*
 * A name of the file that `leader` is now. That one is in no difference when it lost or got other
 * names and nothing else.
 */
static int
set_link(struct sb_manifest *m, struct sb_entry *e, const char *leader, struct sb_error *err)
{
	struct sb_entry *first = sb_manifest_find(m, leader);
	int r = 0;

	if (first && first != e && first->type == SB_ENTRY_FILE) {
		if (!first->link)
			r = sb_manifest_set_link(m, first, leader, err);
		if (r == 0)
			e->link = first->link;
		return r;
	}
	return sb_manifest_set_link(m, e, leader, err);
}

/* Makes the changed paths what the difference says, whatever is there now. */
static int
force(struct sb_manifest *m, const struct sb_manifest *base, const struct sb_diff *d,
	struct sb_error *err)
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
		r = make_parents(m, base, c->path, err);
		put = r == 0 ? sb_manifest_put(m, c->path, &e, c->target, err) : NULL;
		if (r == 0)
			r = !put          ? SB_E_NOMEM :
				c->leader ? set_link(m, put, c->leader, err) :
					    0;
	}
	return r;
}

/*
 * What the sync brought as new is what its record lists: anything else in there came later, and is
 * no part of what the sync left behind.
 */
static void
only_brought(struct sb_manifest *left, const struct sb_diff *reverse)
{
	for (size_t i = 0; i < reverse->n; i++)
		if (reverse->v[i].del)
			(void)sb_manifest_remove(left, reverse->v[i].path);
}

static struct sb_manifest *
load_base(const struct sb_session_local *x)
{
	char name[32];

	(void)snprintf(name, sizeof name, "root%zu.base", x->pair);
	return sb_manifest_load(x->dirfd, name, NULL);
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
 * Content from the base store; SB_E_NOTFOUND when that does not keep it (any more). A store that
 * cannot be read just now is another thing: nothing is undone then, and the next try finds all.
 */
static int
kept_content(struct sb_session_local *x, const struct sb_digest *digest, struct sb_buf *out,
	struct sb_error *err)
{
	struct sb_store *store = sb_replica_store(x->rep);
	struct sb_error e = { 0 };
	int r;

	if (!store)
		return sb_fail(err, SB_E_UNAVAILABLE,
			"the base store cannot be opened, and nothing was undone: try again");
	r = sb_store_get(store, digest, out, &e);
	if (r == 0 || r == SB_E_NOTFOUND || r == SB_E_CORRUPT)
		return r == 0 ? 0 : SB_E_NOTFOUND;
	return sb_fail(err, r, "%s; nothing was undone: try again", e.msg);
}

/*
 * Brings the contents the changes need into the stage; what is not kept any more stays as it is
 * now, and is told.
 */
static int
bring_contents(struct sb_session_local *x, struct sb_manifest *target,
	const struct sb_diff *changes, struct sb_error *err)
{
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
		r = kept_content(x, &c->entry.digest, &b, err);
		if (r == 0)
			r = sb_session_local_offer(x, b.data, b.len, &d, err);
		if (r != SB_E_NOTFOUND)
			continue;
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
	sb_auto(sb_manifest) struct sb_manifest *base = load_base(x);
	int r = left ? 0 : err ? err->code : SB_E_NOMEM;

	sb_step_next(x->clock, SB_STEP_PLAN);
	/*
	 * What the sync left behind, and what was there before it; where it did nothing, both are
	 * as it is now.
	 */
	for (size_t i = 0; r == 0 && i < u->n; i++) {
		only_brought(left, &u->layers[i].reverse);
		r = force(left, base, &u->layers[i].forward, err);
	}
	if (r == 0 && !(before = sb_manifest_copy(left, err)))
		r = err ? err->code : SB_E_NOMEM;
	for (size_t i = u->n; r == 0 && i-- > 0;)
		r = force(before, base, &u->layers[i].reverse, err);
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
		r = err ? err->code : SB_E_NOMEM;
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

/* A run that can be undone, over all roots. */
struct undo_runs {
	struct sb_session_undo_file *v; /* the newest first; `size`: how many roots it changed */
	size_t n;
};

static int
find_runs(int dirfd, const struct sb_session *s, struct undo_runs *out, struct sb_error *err)
{
	for (size_t i = 0; i < s->n_pairs; i++) {
		sb_autofree struct sb_session_undo_file *v = NULL;
		struct sb_session_undo_file *all;
		size_t n = 0;
		int r = sb_session_undo_files(dirfd, i, &v, &n, err);

		if (r < 0)
			return r;
		all = reallocarray(out->v, out->n + n + 1, sizeof *all);
		if (!all)
			return sb_fail(err, SB_E_NOMEM, "undo: out of memory");
		out->v = all;
		for (size_t k = 0, at = 0; k < n; k++) {
			while (at < out->n && all[at].stamp > v[k].stamp)
				at++;
			if (at < out->n && all[at].stamp == v[k].stamp) {
				all[at].settled |= v[k].settled;
				continue;
			}
			memmove(&all[at + 1], &all[at], (out->n - at) * sizeof *all);
			all[at] = v[k];
			out->n++;
		}
	}
	return 0;
}

/* All that the runs from `from` on did to one root, as one record. */
static int
gather(int dirfd, size_t pair, const struct undo_runs *runs, uint64_t from,
	struct sb_session_undo *out, struct sb_error *err)
{
	int r = 0;

	for (size_t i = runs->n; r == 0 && i-- > 0;) {
		sb_auto(sb_session_undo) struct sb_session_undo u = { 0 };

		if (runs->v[i].stamp < from)
			continue;
		r = sb_session_undo_load(dirfd, pair, runs->v[i].stamp, &u, err);
		if (r == 0)
			r = sb_session_undo_append(out, &u, err);
		else if (r == SB_E_NOTFOUND) /* that run left this root alone */
			r = 0;
	}
	return r;
}

static int
undo_from(struct sb_session_held *h, struct sb_session *s, const struct undo_runs *runs,
	uint64_t from, const struct sb_sync_opts *opts, struct sb_sync_result *res,
	struct sb_error *err)
{
	uint64_t stamp = sb_session_stamp();
	int r = 0;

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

		r = gather(h->dirfd, i, runs, from, &u, err);
		if (r < 0 || !u.n)
			continue;
		r = sb_session_local_open(&x, err);
		if (r == 0)
			r = undo_pair(&x, &u, err);
		sb_session_local_close(&x);
	}
	return r;
}

static bool
did_nothing(const struct sb_sync_result *res)
{
	return !res->files_synced && !res->files_deleted && !res->files_moved && !res->n_changes &&
		!res->conflicts.n && !res->errors.n;
}

static int
undo_held(struct sb_session_held *h, struct sb_session *s, uint64_t to,
	const struct sb_sync_opts *opts, struct sb_sync_result *res, struct sb_error *err)
{
	struct undo_runs runs = { 0 };
	int r = find_runs(h->dirfd, s, &runs, err);

	if (r == 0 && (!runs.n || runs.v[0].stamp < to))
		r = sb_fail(err, SB_E_NOTFOUND,
			"session '%s' has nothing to undo: no sync has changed %s %s", s->name,
			s->pairs[0].local, runs.n ? "since then" : "yet");
	for (size_t i = 0; r == 0; i++) {
		r = undo_from(h, s, &runs, to ? to : runs.v[i].stamp, opts, res, err);
		/* A run that died may not have made anything: then the one before it is meant. */
		if (r < 0 || to || runs.v[i].settled || i + 1 >= runs.n || !did_nothing(res))
			break;
		for (size_t k = 0; k < s->n_pairs && !opts->dry_run; k++)
			sb_session_undo_drop(h->dirfd, k, runs.v[i].stamp);
	}
	free(runs.v);
	if (!opts->dry_run && r != SB_E_NOTFOUND)
		sb_session_log(h->dirfd, "undo", r, err, res);
	return r;
}

int
sb_session_undo_to(struct sb_session *s, uint64_t to, const struct sb_sync_opts *opts,
	struct sb_sync_result *res, struct sb_error *err)
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
	r = undo_held(&h, s, to, opts, res, err);
	sb_session_let_go(&h);
	res->duration_ms = sb_now_ms() - start;
	return r;
}

int
sb_session_undo(struct sb_session *s, const struct sb_sync_opts *opts, struct sb_sync_result *res,
	struct sb_error *err)
{
	return sb_session_undo_to(s, 0, opts, res, err);
}

void
sb_session_undo_runs_free(struct sb_session_undo_runs *l)
{
	free(l->v);
	memset(l, 0, sizeof *l);
}

static int
describe(int dirfd, const struct sb_session *s, uint64_t stamp, struct sb_session_undo_run *out,
	struct sb_error *err)
{
	*out = (struct sb_session_undo_run){ .run = stamp };
	for (size_t i = 0; i < s->n_pairs; i++) {
		sb_auto(sb_session_undo) struct sb_session_undo u = { 0 };
		int r = sb_session_undo_load(dirfd, i, stamp, &u, NULL);

		if (r == SB_E_NOMEM)
			return sb_fail(err, r, "undo: out of memory");
		if (r < 0)
			continue;
		memcpy(out->reason, u.reason, sizeof out->reason);
		for (size_t k = 0; k < u.n; k++)
			for (size_t c = 0; c < u.layers[k].forward.n; c++) {
				const struct sb_change *ch = &u.layers[k].forward.v[c];

				out->deleted += ch->del;
				out->changed += !ch->del && ch->entry.type != SB_ENTRY_DIR;
			}
	}
	return 0;
}

int
sb_session_undo_list(const struct sb_session *s, const char *state_dir,
	struct sb_session_undo_runs *out, struct sb_error *err)
{
	sb_autofree char *dir = sb_session_dir(state_dir, err);
	sb_autoclose int fd = dir ? sb_session_open_dir(dir, s->name, false, err) : -1;
	struct undo_runs runs = { 0 };
	int r = fd < 0 ? (err ? err->code : SB_E_SYS) : find_runs(fd, s, &runs, err);

	memset(out, 0, sizeof *out);
	if (r == 0 && !(out->v = calloc(runs.n + 1, sizeof *out->v)))
		r = sb_fail(err, SB_E_NOMEM, "undo: out of memory");
	for (; r == 0 && out->n < runs.n; out->n++)
		r = describe(fd, s, runs.v[out->n].stamp, &out->v[out->n], err);
	free(runs.v);
	if (r < 0)
		sb_session_undo_runs_free(out);
	return r;
}
