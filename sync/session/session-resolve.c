/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-resolve.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/str.h>
#include <sync/plan/merge.h>
#include <sync/run/sync-result.h>
#include <sync/session/session-conflicts.h>
#include <sync/session/session-local.h>
#include <sync/session/session-log.h>
#include <sync/session/session-store.h>
#include <sync/session/session-hold.h>

static const char unclean[] = "does not merge cleanly: both versions are kept";

/* The three texts; 1 with the merged one in `out`, 0: there is none. */
static int
merge_row(struct sb_session_local *x, const struct sb_session_row *row, struct sb_buf *out,
	struct sb_error *err)
{
	struct sb_store *store = sb_replica_store(x->rep);
	sb_auto(sb_buf) struct sb_buf base = { 0 }, mine = { 0 }, theirs = { 0 };
	struct sb_merge_text t[3];
	int r;

	sb_buf_init(out, 0);
	if (!store || !sb_digest_known(&row->base) ||
		sb_store_get(store, &row->base, &base, NULL) < 0)
		return 0;
	r = sb_session_local_read(x, row->path, SB_MERGE_MAX_BYTES, &mine, err);
	if (r == 0)
		r = sb_session_local_read(x, row->saved_as, SB_MERGE_MAX_BYTES, &theirs, err);
	if (r < 0)
		return r == SB_E_NOMEM ? r : 0;
	t[0] = (struct sb_merge_text){ base.data, base.len };
	t[1] = (struct sb_merge_text){ mine.data, mine.len };
	t[2] = (struct sb_merge_text){ theirs.data, theirs.len };
	return sb_merge_texts(&t[0], &t[1], &t[2], out, err);
}

/* The merged text takes the place, the saved version goes. */
static int
take_merged(struct sb_session_local *x, struct sb_manifest *target,
	const struct sb_session_row *row, struct sb_error *err)
{
	const struct sb_entry *mine = sb_manifest_find(x->rep->scan.manifest, row->path),
			      *theirs = sb_manifest_find(x->rep->scan.manifest, row->saved_as);
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	struct timespec now;
	struct sb_entry e;
	int r = mine && theirs && mine->type == SB_ENTRY_FILE && theirs->type == SB_ENTRY_FILE ?
		merge_row(x, row, &text, err) :
		0;

	if (r <= 0)
		return r;
	e = *mine;
	e.link = 0;
	e.flags = 0;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	e.mtime = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	e.size = text.len;
	if (mine->mode == row->base_mode)
		e.mode = theirs->mode;
	r = sb_session_local_offer(x, text.data, text.len, &e.digest, err);
	if (r == 0 && !sb_manifest_put(target, row->path, &e, NULL, err))
		r = SB_E_NOMEM;
	(void)sb_manifest_remove(target, row->saved_as);
	sb_strlist_add(&x->made, row->path);
	sb_strlist_add(&x->needed, row->saved_as);
	if (r == 0)
		r = sb_strlist_check(&x->made, err);
	if (r == 0)
		r = sb_strlist_check(&x->needed, err);
	return r < 0 ? r : 1;
}

/* 1: done, 0: not possible. */
static int
resolve_row(struct sb_session_local *x, struct sb_manifest *target,
	const struct sb_session_row *row, enum sb_session_take take, struct sb_error *err)
{
	const struct sb_entry *theirs = sb_manifest_find(x->rep->scan.manifest, row->saved_as);
	int r;

	if (!theirs)
		return 0;
	if (take == SB_TAKE_MERGED)
		return take_merged(x, target, row, err);
	if (take == SB_TAKE_RUNTIME) {
		r = sb_manifest_graft(target, row->path, theirs, err);
		if (r < 0)
			return r;
	}
	(void)sb_manifest_remove(target, row->saved_as);
	return 1;
}

static int
put_back(struct sb_session_local *x, struct sb_manifest *target, const char *path,
	struct sb_error *err)
{
	const struct sb_entry *e = sb_manifest_find(x->rep->scan.manifest, path);

	(void)sb_manifest_remove(target, path);
	return e ? sb_manifest_graft(target, path, e, err) : 0;
}

/*
 * The guard judges the decisions together; those that it refuses are taken back, and told. Returns
 * how many.
 */
static int
take_back_refused(struct sb_session_local *x, struct sb_manifest *target,
	const struct sb_session_row *rows, size_t n, bool *done, struct sb_error *err)
{
	sb_auto(sb_guard_verdicts) struct sb_guard_verdicts v = { 0 };
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	int r = sb_manifest_finish(target, err), count = 0;

	if (r == 0)
		r = sb_session_local_judge(x, target, &d, &v, err);
	for (size_t k = 0; r == 0 && k < v.n; k++)
		for (size_t i = 0; r == 0 && i < n; i++) {
			size_t len = strlen(rows[i].path);

			if (!done[i] || strncmp(v.v[k].path, rows[i].path, len) != 0 ||
				(v.v[k].path[len] && v.v[k].path[len] != '/'))
				continue;
			done[i] = false;
			count++;
			r = put_back(x, target, rows[i].path, err);
			if (r == 0)
				r = put_back(x, target, rows[i].saved_as, err);
			if (r == 0)
				r = sb_sync_result_note(&x->res->conflicts, rows[i].path,
					rows[i].saved_as, sb_reconcile_conflict_text(v.v[k].kind),
					err);
		}
	return r < 0 ? r : count;
}

/* The saved version of a decision that could not be carried out is still there. */
static int
take_back_left(const struct sb_session_local *x, const struct sb_session_row *rows, size_t n,
	bool *done)
{
	int left = 0;

	for (size_t i = 0; i < n && !x->o->dry_run; i++)
		if (done[i] && sb_manifest_find(x->rep->scan.manifest, rows[i].saved_as)) {
			done[i] = false;
			left++;
		}
	return left;
}

int
sb_session_resolve_rows(struct sb_session_local *x, const struct sb_session_row *rows, size_t n,
	enum sb_session_take take, bool *done, struct sb_error *err)
{
	sb_auto(sb_manifest) struct sb_manifest *target =
		sb_manifest_copy(x->rep->scan.manifest, err);
	int r = target ? 0 : SB_E_NOMEM, count = 0;

	sb_step_next(x->clock, SB_STEP_PLAN);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		r = resolve_row(x, target, &rows[i], take, err);
		done[i] = r > 0;
		count += r > 0;
	}
	x->removes = take == SB_TAKE_LOCAL;
	while (r >= 0 && count && !x->removes &&
		(r = take_back_refused(x, target, rows, n, done, err)) > 0)
		count -= r;
	if (r >= 0)
		r = sb_manifest_finish(target, err);
	if (r >= 0 && count)
		r = sb_session_local_apply(x, target, err);
	if (r >= 0)
		count -= take_back_left(x, rows, n, done);
	sb_strlist_free(&x->made);
	sb_strlist_free(&x->needed);
	return r < 0 ? r : count;
}

/* The rows of one root that are meant. */
static int
pick(const struct sb_session_saved_list *all, const char *root, const char *path,
	struct sb_session_row *rows, size_t *n)
{
	*n = 0;
	for (size_t i = 0; i < all->n; i++) {
		const struct sb_session_saved *s = &all->v[i];
		sb_autofree char *full = sb_str_printf("%s/%s", s->root, s->path),
				 *saved = sb_str_printf("%s/%s", s->root, s->saved_as);

		if (!full || !saved)
			return SB_E_NOMEM;
		if (strcmp(s->root, root) != 0 ||
			(path && strcmp(path, full) != 0 && strcmp(path, saved) != 0))
			continue;
		rows[*n] = (struct sb_session_row){ .path = s->path,
			.saved_as = s->saved_as,
			.base_mode = s->base_mode };
		memcpy(rows[(*n)++].base.b, s->base, 16);
	}
	return 0;
}

/*
 * The same path may have several saved versions: each is decided on its own, in the order they
 * came.
 */
static int
resolve_pair(struct sb_session_local *x, const struct sb_session_row *rows, size_t n,
	enum sb_session_take take, struct sb_error *err)
{
	int r = 0, all = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		bool done = false;
		size_t told = x->res->conflicts.n;

		r = sb_session_resolve_rows(x, &rows[i], 1, take, &done, err);
		if (r >= 0 && done) {
			all++;
			r = sb_sync_result_note(&x->res->merged, rows[i].path, rows[i].saved_as,
				take == SB_TAKE_LOCAL ? "the local version stays" :
					take == SB_TAKE_RUNTIME ?
							"the sandbox's version was taken" :
							"merged",
				err);
		} else if (r >= 0 && x->res->conflicts.n == told) {
			r = sb_sync_result_note(&x->res->conflicts, rows[i].path, rows[i].saved_as,
				unclean, err);
		}
	}
	return r < 0 ? r : all;
}

static int
resolve_held(struct sb_session_held *h, struct sb_session *s, const char *path,
	enum sb_session_take take, const struct sb_sync_opts *opts, struct sb_sync_result *res,
	struct sb_error *err)
{
	sb_auto(sb_session_saved_list) struct sb_session_saved_list all = { 0 };
	sb_autofree struct sb_session_row *rows = NULL;
	uint64_t stamp = sb_session_stamp();
	int r = sb_session_conflicts_load(h->dirfd, &all, err), count = 0;

	if (r < 0)
		return r;
	rows = calloc(all.n + 1, sizeof *rows);
	if (!rows)
		return sb_fail(err, SB_E_NOMEM, "resolve: out of memory");
	for (size_t i = 0; r >= 0 && i < s->n_pairs; i++) {
		struct sb_step_clock clock;
		struct sb_session_local x = { .s = s,
			.o = opts,
			.dirfd = h->dirfd,
			.pair = i,
			.stamp = stamp,
			.clock = &clock,
			.res = res };
		size_t n;

		r = pick(&all, s->pairs[i].local, path, rows, &n);
		if (r < 0 || !n)
			continue;
		count += (int)n;
		r = sb_session_local_open(&x, err);
		if (r == 0)
			r = resolve_pair(&x, rows, n, take, err);
		sb_session_local_close(&x);
	}
	if (r >= 0 && path && !count)
		r = sb_fail(err, SB_E_NOTFOUND,
			"%s is no conflict of session '%s': 'sbsync conflicts %s' lists them", path,
			s->name, s->name);
	if (!opts->dry_run)
		sb_session_log(h->dirfd, "resolve", r, err, res);
	return r < 0 ? r : 0;
}

int
sb_session_resolve(struct sb_session *s, const char *path, enum sb_session_take take,
	const struct sb_sync_opts *opts, struct sb_sync_result *res, struct sb_error *err)
{
	struct sb_session_held h;
	int64_t start = sb_now_ms();
	int r;

	memset(res, 0, sizeof *res);
	res->direction = "local";
	res->reason = "resolve";
	r = sb_session_hold(opts->state_dir, s->name, false, &h, err);
	if (r < 0)
		return r;
	r = resolve_held(&h, s, path, take, opts, res, err);
	sb_session_let_go(&h);
	res->duration_ms = sb_now_ms() - start;
	return r;
}
