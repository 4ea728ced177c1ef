/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_UNDERWAY_H
#define SBSYNC_SESSION_UNDERWAY_H

#include <stdbool.h>
#include <stdint.h>

#include <base/buf.h>
#include <sync/plan/reconcile.h>
#include <sync/tree/manifest.h>

/*
 * What a run is about to bring from one side to the other, on record beside the session's base
 * before the first of it is done. A run that ends before it records the base (killed, cut off,
 * refused by the far side) leaves it, and the next run finds out by looking at both trees what of
 * it arrived: that is what both sides had in common, and belongs into the base. Without this, the
 * next edit of such a file would look like one of both sides.
 *
 * A path counts as brought when the side it was to reach has it with this content. What does not
 * fit keeps its old base entry, so that both versions are kept: never a loss, at worst a conflict.
 */

/*
 * The record of a run that is to carry out `rec` between the scanned trees, into `out` (zeroed by
 * the caller); nothing to do leaves that empty.
 */
int sb_session_underway_encode(const struct sb_reconciled *rec, const struct sb_manifest *local,
	const struct sb_manifest *far, struct sb_buf *out, struct sb_error *err);
/* Writes it, unless it is empty. `durable`: a power cut does not take it. */
int sb_session_underway_begin(int dirfd, size_t pair, const struct sb_buf *record, bool durable,
	struct sb_error *err);
/* Removes it: the base says it all. */
void sb_session_underway_end(int dirfd, size_t pair);

/*
 * Brings `base` up to date with what an earlier run left on record: 1 when it changed (finished
 * again), 0 when there was nothing. `mode_mask`: the mode bits that count. A damaged record counts
 * as none.
 */
int sb_session_underway_fold(int dirfd, size_t pair, struct sb_manifest *base,
	const struct sb_manifest *local, const struct sb_manifest *far, uint16_t mode_mask,
	struct sb_error *err);

/*
 * The same for what a pull has just brought here: `done` is what was done, `far` the tree it came
 * from, `local` the tree now.
 */
int sb_session_underway_pulled(struct sb_manifest *base, const struct sb_diff *done,
	const struct sb_manifest *local, const struct sb_manifest *far, uint16_t mode_mask,
	struct sb_error *err);

#endif
