/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-unsaved.h>

#include <string.h>

#include <sync/tree/diff.h>

/* Is `path` `top`, or something in it? */
static bool
within(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (!path[n] || path[n] == '/');
}

static bool
within_any(const char *path, const struct sb_strlist *tops)
{
	for (size_t i = 0; i < tops->n; i++)
		if (within(path, tops->v[i]))
			return true;
	return false;
}

int
sb_session_unsaved_find(const struct sb_reconciled *rec, const struct sb_commit_result *res,
	struct sb_strlist *out, struct sb_error *err)
{
	for (size_t i = 0; res->n_left && i < rec->n_conflicts; i++) {
		const struct sb_conflict *c = &rec->conflicts[i];

		for (size_t k = 0; c->saved_as && k < res->n_left; k++)
			if (within(res->left[k].path, c->saved_as)) {
				sb_strlist_add(out, c->path);
				break;
			}
	}
	return sb_strlist_check(out, err);
}

int
sb_session_unsaved_replan(struct sb_run *run, const struct sb_reconciled *rec,
	const struct sb_diff *all, const struct sb_strlist *paths, struct sb_plan *plan,
	struct sb_manifest **far_next, struct sb_strlist *left, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist out = { 0 };
	sb_auto(sb_diff) struct sb_diff some = { 0 };
	int r = 0;

	for (size_t i = 0; i < rec->n_conflicts; i++)
		if (rec->conflicts[i].saved_as && within_any(rec->conflicts[i].path, paths)) {
			sb_strlist_add(&out, rec->conflicts[i].path);
			sb_strlist_add(&out, rec->conflicts[i].saved_as);
		}
	/* What was to be one file with something that does not come cannot be either. */
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].leader && within_any(all->v[i].leader, &out))
			sb_strlist_add(&out, all->v[i].path);
	for (size_t i = 0; i < out.n; i++)
		sb_strlist_add(left, out.v[i]);
	r = sb_strlist_check(&out, err);
	if (r == 0)
		r = sb_strlist_check(left, err);
	for (size_t i = 0; r == 0 && i < all->n; i++)
		if (!within_any(all->v[i].path, &out))
			r = sb_diff_add_copy(&some, &all->v[i], err);
	sb_plan_free(plan);
	sb_manifest_free(*far_next);
	*far_next = r < 0 ? NULL : sb_manifest_copy(run->far.manifest, err);
	if (r == 0 && !*far_next)
		r = err ? err->code : SB_E_NOMEM;
	if (r == 0)
		r = sb_diff_apply(*far_next, &some, err);
	return r < 0 ? r : sb_run_plan_push(run, &some, plan, err);
}
