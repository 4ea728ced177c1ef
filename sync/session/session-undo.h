/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_UNDO_H
#define SBSYNC_SESSION_UNDO_H

#include <stdint.h>

#include <base/cleanup.h>
#include <sync/tree/manifest.h>
#include <sync/replica/replica.h>
#include <sync/tree/diff.h>

/*
 * The records of what runs did to a local root, for undo: a file for each run, with layers of
 * changes, each with its reverse; the base store has the contents, up to its cap. A run writes its
 * record beside the session's base before its commit. Nothing depends on them: after a crash one
 * may list changes that were never made, and undo compares with the tree anyway. The newest
 * SB_SESSION_UNDO_RUNS are kept, for SB_SESSION_UNDO_DAYS and up to SB_SESSION_UNDO_BYTES; the last
 * one always.
 */
#define SB_SESSION_UNDO_RUNS 64
#define SB_SESSION_UNDO_DAYS 30
#define SB_SESSION_UNDO_BYTES (64u << 20)

struct sb_session_layer {
	struct sb_diff forward, reverse;
};

struct sb_session_undo {
	uint64_t stamp;  /* of the run, ns since the epoch; the same for its roots */
	char reason[16]; /* of the run; "" when not known */
	struct sb_session_layer *layers; /* in the order they were made */
	size_t n;
};
void sb_session_undo_free(struct sb_session_undo *u);
SB_CLEANUP_VALUE(sb_session_undo, sb_session_undo_free)

/*
 * Keeps what `forward` is about to replace or delete in the scanned root, and writes the record. A
 * record of the same run grows by a layer. Leaves out what it cannot keep (too large, no store);
 * undo says so then.
 */
int sb_session_undo_prepare(int dirfd, size_t pair, uint64_t stamp, const char *reason,
	struct sb_replica *rep, const struct sb_diff *forward, struct sb_error *err);
/*
 * `made`: the run made the changes; old records that are too many go. Else the record goes, unless
 * a commit was begun, which recovery will finish.
 */
void sb_session_undo_settle(int dirfd, size_t pair, uint64_t stamp, const struct sb_replica *rep,
	bool made);

/* A record of one root. `settled`: its run is known to have made the changes. */
struct sb_session_undo_file {
	uint64_t stamp;
	uint64_t size;
	bool settled;
};

/* The records of a root, the newest first. The caller frees the array. */
int sb_session_undo_files(int dirfd, size_t pair, struct sb_session_undo_file **out, size_t *out_n,
	struct sb_error *err);
int sb_session_undo_load(int dirfd, size_t pair, uint64_t stamp, struct sb_session_undo *out,
	struct sb_error *err);
void sb_session_undo_drop(int dirfd, size_t pair, uint64_t stamp);
/* Puts the layers of `from` behind those of `u` and empties it. */
int sb_session_undo_append(struct sb_session_undo *u, struct sb_session_undo *from,
	struct sb_error *err);

#endif
