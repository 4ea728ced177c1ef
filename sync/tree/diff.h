/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_DIFF_H
#define SBSYNC_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <sb/error.h>
#include <sync/tree/manifest.h>

/*
 * The changes that lead from one manifest to another, in pre-order: PUT (a new or changed entry,
 * directories before their entries) or DEL (a whole subtree in one). A type change to or from a
 * directory is DEL then PUT at the same path.
 */
struct sb_change {
	const char *path; /* borrowed from the diff */
	bool del;
	struct sb_entry entry; /* PUT: name is the leaf; a directory's `dir` is NULL */
	const char *target;    /* symlinks */
	const char *leader;    /* hard-linked to this path (its own path: the leader), or NULL */
	bool fresh; /* a leader that shares its inode with others now: it gets one of its own. For
		       the plan only, never encoded */
};

struct sb_diff {
	struct sb_change *v;
	size_t n;
	size_t cap;
	void *arena;
};

void sb_diff_free(struct sb_diff *d);
SB_CLEANUP_VALUE(sb_diff, sb_diff_free)
/*
 * Fills `out` (zeroed by the caller). Skips equal subtrees by their digests: both must be finished.
 * Hard-link changes count.
 */
int sb_diff_make(const struct sb_manifest *from, const struct sb_manifest *to, struct sb_diff *out,
	struct sb_error *err);
/* Adds one change; copies path, target, leader. */
int sb_diff_add(struct sb_diff *d, const char *path, bool del, const struct sb_entry *e,
	const char *target, const char *leader, struct sb_error *err);
/* The same with a change of another difference, and with all of one. */
int sb_diff_add_copy(struct sb_diff *d, const struct sb_change *c, struct sb_error *err);
int sb_diff_copy(struct sb_diff *to, const struct sb_diff *from, struct sb_error *err);
/* Pre-order of whole components: '/' sorts before every other byte. <0, 0, >0. */
int sb_diff_path_order(const char *a, const char *b);
/* The PUT at `path` in a difference that is in order; NULL: there is none. */
const struct sb_change *sb_diff_find_put(const struct sb_diff *d, const char *path);
/* Gives a PUT of the difference this leader (copied). */
int sb_diff_set_leader(struct sb_diff *d, struct sb_change *c, const char *leader,
	struct sb_error *err);
/*
 * The same checks as sb_manifest_decode; paths must be strictly ordered (DEL before PUT at one
 * path).
 */
int sb_diff_encode(const struct sb_diff *d, struct sb_buf *out, struct sb_error *err);
int sb_diff_decode(const void *data, size_t len, const struct sb_manifest_limits *limits,
	struct sb_diff *out, struct sb_error *err);
/*
 * Applies it; the result is finished. SB_E_CORRUPT when it does not fit: no parent, DEL of nothing,
 * PUT that turns a directory into something else or back without a DEL. After a failure the
 * manifest is good for sb_manifest_free only.
 */
int sb_diff_apply(struct sb_manifest *m, const struct sb_diff *d, struct sb_error *err);

/*
 * Compares two paths in the order of a difference: a path comes before what is beneath it, and that
 * before its neighbours ('/' sorts below every other byte).
 */
int sb_diff_order(const char *a, const char *b);

#endif
