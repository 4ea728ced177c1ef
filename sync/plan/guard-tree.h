/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_GUARD_TREE_H
#define SBSYNC_GUARD_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include <base/cleanup.h>
#include <sync/plan/reconcile.h>
#include <sync/tree/diff.h>

/*
 * The guard over a whole plan. It asks of the tree that would result: does anything that git obeys
 * exist, change or get reached differently than before? git obeys what lies in a git directory
 * (guard.h names it), so it first finds every git directory of both trees: those called .git, those
 * that look like one (HEAD beside objects and refs, or beside commondir), and those that a .git
 * file, a .git link or commondir leads to. Files that a configuration includes, hooks and programs
 * of the tree that it names (guard-config.h) are obeyed as well, seen from each working tree; the
 * user's and the system's configuration count, too. A commit may be cut or leave single changes
 * out, so a directory counts when old and new parts together make one. Then no change may
 *   - touch what git obeys there, or put a symlink anywhere in there;
 *   - take away or replace by anything else a directory that holds such things, the signs of a git
 *     directory, or anything on the way to one that is reached from elsewhere;
 *   - make a git directory out of one that holds such things already;
 *   - share an inode with such a thing.
 * Project files and, on request, links out of the root are judged here too.
 */
struct sb_guard_opts {
	bool trust_git;
	bool trust_project;
	bool no_escaping_links;
	const struct sb_guard_files *files; /* NULL: no file is read */
};

struct sb_guard_verdict {
	const char *path; /* the diff's; holds for all beneath it */
	enum sb_conflict_kind kind;
};

struct sb_guard_verdicts {
	struct sb_guard_verdict *v; /* pre-order, none beneath another */
	size_t n, cap;
};
void sb_guard_verdicts_free(struct sb_guard_verdicts *v);
SB_CLEANUP_VALUE(sb_guard_verdicts, sb_guard_verdicts_free)

/*
 * Judges `d` (sorted, from `local` to what shall be). Besides the verdicts it changes `d`: hard
 * links to what git obeys become copies, and a directory that may not be moved as a whole (a git
 * directory lies in, at or above it, or something in it is refused) loses its digest.
 */
int sb_guard_tree_check(const struct sb_manifest *local, struct sb_diff *d,
	const struct sb_guard_opts *o, struct sb_guard_verdicts *out, struct sb_error *err);

/* Takes the refused changes, with all beneath, out of `d`. The verdicts stay usable. */
void sb_guard_tree_drop(struct sb_diff *d, const struct sb_guard_verdicts *v);

#endif
