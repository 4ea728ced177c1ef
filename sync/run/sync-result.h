/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SYNC_RESULT_H
#define SBSYNC_SYNC_RESULT_H

#include <sbsync/sync.h>
#include <sync/plan/plan.h>
#include <sync/wire/proto.h>
#include <sync/scan/scan.h>

/* Fills the public result. `why` must be a constant. */
int sb_sync_result_note(struct sb_sync_notes *l, const char *path, const char *saved_as,
	const char *why, struct sb_error *err);
/*
 * Is this very note there, from the `*at`-th on? Then `*at` is the one behind it: who asks in the
 * order of the notes looks at each once.
 */
bool sb_sync_result_is_told(const struct sb_sync_notes *l, size_t *at, const char *path,
	const char *saved_as);
/* Takes away the first note about `path` from the `from`-th on. */
void sb_sync_result_drop_note(struct sb_sync_notes *l, size_t from, const char *path);
/*
 * Adds the plan to the list of changes of a dry run; `at` is the receiver's tree, `side` which one
 * that is. sb_sync_result_planned: of a run that is about to carry it out, SB_SYNC_CHANGES_MAX at
 * most; the commit takes out what it left alone.
 */
int sb_sync_result_changes(struct sb_sync_result *res, const struct sb_plan *p,
	const struct sb_manifest *at, const char *side, struct sb_error *err);
int sb_sync_result_planned(struct sb_sync_result *res, const struct sb_plan *p,
	const struct sb_manifest *at, const char *side, struct sb_error *err);
/* Adds what the commit of `p` did and what it left alone. */
int sb_sync_result_commit(struct sb_sync_result *res, const struct sb_plan *p,
	const struct sb_commit_result *c, struct sb_error *err);
/* A directory stands where something else should be, and holds what is not synced. */
bool sb_sync_result_in_way(const struct sb_diff *planned, const struct sb_commit_row *left);
extern const char sb_sync_result_way_text[];
/*
 * Prepares `res` for another attempt: keeps bytes, times and counts of attempts, drops everything
 * that the failed one found out.
 */
void sb_sync_result_restart(struct sb_sync_result *res);
/* Merges `part` into `res` and empties it. */
int sb_sync_result_add(struct sb_sync_result *res, struct sb_sync_result *part,
	struct sb_error *err);
int sb_sync_result_skipped(struct sb_sync_result *res, const struct sb_skipped *v, size_t n,
	struct sb_error *err);

/* Did the run leave anything out because it changed while it was read? */
bool sb_sync_result_has_unstable(const struct sb_sync_result *r);
/*
 * Drops the notes about left-out files before another run over the same trees: it finds them again,
 * or they have become stable.
 */
void sb_sync_result_look_again(struct sb_sync_result *r);
/*
 * Merges the previous run over the same pair into `res` and empties it; its skipped paths were
 * checked again.
 */
int sb_sync_result_after(struct sb_sync_result *res, struct sb_sync_result *before,
	struct sb_error *err);

#endif
