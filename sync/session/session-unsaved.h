/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_UNSAVED_H
#define SBSYNC_SESSION_UNSAVED_H

#include <base/strlist.h>
#include <sync/plan/reconcile.h>
#include <sync/run/run.h>

/*
 * A conflict is settled when the runtime's version lies beside the local one here. Where that could
 * not be put (no right to make a name, a name that the file system does not take), the only copy is
 * the runtime's: it keeps its place there, and the base keeps its old entry, so that the next run
 * finds the conflict again.
 */

/*
 * Adds to `out` the paths of the conflicts in `rec` whose saved version, or anything in it, the
 * commit here left out.
 */
int sb_session_unsaved_find(const struct sb_reconciled *rec, const struct sb_commit_result *res,
	struct sb_strlist *out, struct sb_error *err);

/*
 * Plans the push anew, without what would replace the versions of `paths` or lie beside them.
 * `all` are the changes that were to be made there; `plan` and `far_next` (the runtime's tree
 * afterwards) are replaced. Paths that are left out are added to `left`.
 */
int sb_session_unsaved_replan(struct sb_run *run, const struct sb_reconciled *rec,
	const struct sb_diff *all, const struct sb_strlist *paths, struct sb_plan *plan,
	struct sb_manifest **far_next, struct sb_strlist *left, struct sb_error *err);

#endif
