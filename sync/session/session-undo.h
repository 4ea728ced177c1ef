/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_UNDO_H
#define SBSYNC_SESSION_UNDO_H

#include <stdint.h>

#include <base/cleanup.h>
#include <sync/tree/manifest.h>
#include <sync/replica/replica.h>
#include <sync/tree/diff.h>

/*
 * The record of what the last run did to a local root, for undo: layers of changes, each with its
 * reverse; the base store has the contents, up to its cap. A run writes it beside the session's
 * base before its commit. Nothing depends on it: after a crash it may list changes that were never
 * made, and undo compares with the tree anyway.
 */
struct sb_session_layer {
	struct sb_diff forward, reverse;
};

struct sb_session_undo {
	uint64_t stamp;                  /* of the run; the same for all its roots */
	struct sb_session_layer *layers; /* in the order they were made */
	size_t n;
};
void sb_session_undo_free(struct sb_session_undo *u);
SB_CLEANUP_VALUE(sb_session_undo, sb_session_undo_free)

/*
 * Keeps what `forward` is about to replace or delete in the scanned root, and writes the record
 * aside. A record of the same run grows by a layer. Leaves out what it cannot keep (too large, no
 * store); undo says so then.
 */
int sb_session_undo_prepare(int dirfd, size_t pair, uint64_t stamp, struct sb_replica *rep,
	const struct sb_diff *forward, struct sb_error *err);
/* `made`: the run made the changes, so the record replaces the one before; else removes it. */
void sb_session_undo_settle(int dirfd, size_t pair, bool made);

/* SB_E_NOTFOUND: there is nothing to undo. */
int sb_session_undo_load(int dirfd, size_t pair, struct sb_session_undo *out, struct sb_error *err);

#endif
