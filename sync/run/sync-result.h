/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SYNC_RESULT_H
#define SBSYNC_SYNC_RESULT_H

#include <sbsync/sync.h>
#include <sync/plan/plan.h>
#include <sync/wire/proto.h>
#include <sync/scan/scan.h>

/* Filling the public result. `why` must be a constant. */
int sb_sync_result_note(struct sb_sync_notes *l, const char *path, const char *saved_as,
	const char *why, struct sb_error *err);
/*
 * Adds the plan to the list of changes of a dry run; `at` is the receiver's tree, `side` which one
 * that is.
 */
int sb_sync_result_changes(struct sb_sync_result *res, const struct sb_plan *p,
	const struct sb_manifest *at, const char *side, struct sb_error *err);
/* What a commit did and what it left alone. */
int sb_sync_result_commit(struct sb_sync_result *res, const struct sb_commit_result *c,
	struct sb_error *err);
/*
 * Before the sync is tried again: what moved and how long it took stays, what was found out goes.
 */
void sb_sync_result_restart(struct sb_sync_result *res);
/* Adds a part to the whole and empties it. */
int sb_sync_result_add(struct sb_sync_result *res, struct sb_sync_result *part,
	struct sb_error *err);
int sb_sync_result_skipped(struct sb_sync_result *res, const struct sb_skipped *v, size_t n,
	struct sb_error *err);

/* Was anything left out because it changed while it was read? */
bool sb_sync_result_has_unstable(const struct sb_sync_result *r);
/*
 * Before another look at the same trees: what was left out in this one will be found again, or is
 * calm.
 */
void sb_sync_result_look_again(struct sb_sync_result *r);
/*
 * Adds the run before this one over the same pair and empties it: what that one skipped has been
 * looked at again.
 */
int sb_sync_result_after(struct sb_sync_result *res, struct sb_sync_result *before,
	struct sb_error *err);

#endif
