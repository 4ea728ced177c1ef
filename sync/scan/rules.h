/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RULES_H
#define SBSYNC_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <sync/tree/digest.h>

/*
 * Exclude rules with gitignore's grammar and semantics. Patterns come in lists; a list belongs to a
 * directory ("" is the root) and a source. The last matching pattern of the strongest list that has
 * one decides. Strongest first: SB_RULES_COMMAND; then per directory from the deepest up:
 * SB_RULES_SBSYNCIGNORE, SB_RULES_GITIGNORE of the same directory; then SB_RULES_GITEXCLUDE, also
 * from the deepest up; then SB_RULES_FROM_FILE; then SB_RULES_BUILTIN. What git tracks is not
 * excluded by git's lists; SB_RULES_TRACKED is no list of patterns (sb_rules_set_tracked). A path
 * beneath an excluded directory is excluded whatever the patterns say: callers walk from the top
 * and do not enter excluded directories; sb_rules_excluded does that for a single path.
 */
enum sb_rules_source {
	SB_RULES_BUILTIN,
	SB_RULES_FROM_FILE,
	SB_RULES_GITIGNORE,
	SB_RULES_SBSYNCIGNORE,
	SB_RULES_COMMAND,
	SB_RULES_GITEXCLUDE, /* info/exclude and core.excludesFile of a repository */
	SB_RULES_TRACKED,
	SB_RULES_SOURCES,
};

struct sb_rules;
struct sb_rules_node; /* the rules in force inside one directory; lives as long as its sb_rules */

struct sb_rules *sb_rules_new(struct sb_error *err);
void sb_rules_free(struct sb_rules *r);
SB_CLEANUP_PTR(sb_rules, sb_rules_free)

/*
 * One pattern (COMMAND, BUILTIN: taken as it is, as `git ls-files -x` does, so '#' and final blanks
 * count; FROM_FILE: a line of a file, may be a comment), or a whole ignore file's text found in
 * directory `dir` (COMMAND, FROM_FILE, BUILTIN: ""). Thread-safe; all of a file or nothing is
 * added. Nodes taken before do not see it: add a directory's files, then enter it. Limits: 1 MiB a
 * file, 4096 bytes a pattern (of an ignore file longer lines are left out, and the result is their
 * number; else SB_E_LIMIT naming it), 262144 patterns of together 16 MiB, 65536 directories.
 */
int sb_rules_add(struct sb_rules *r, enum sb_rules_source src, const char *pattern,
	struct sb_error *err);
int sb_rules_add_file(struct sb_rules *r, enum sb_rules_source src, const char *dir,
	const char *text, size_t len, struct sb_error *err);

/*
 * git's lists, those added from now on, are compared without regard to case (core.ignorecase).
 */
void sb_rules_fold_git(struct sb_rules *r);

/*
 * The files that git's lists match and that git tracks all the same: sorted texts as in
 * rules-tracked.c. They take the place of those that were set before. SB_E_CORRUPT: not sorted, or
 * no such text.
 */
int sb_rules_set_tracked(struct sb_rules *r, const char *const *texts, size_t n,
	struct sb_error *err);
/* Is it git's lists that exclude this entry? Looks at no parent and at nothing tracked. */
bool sb_rules_git_ignores(struct sb_rules *r, const char *path, bool is_dir);
/* Is there a list of git's? */
bool sb_rules_has_git(struct sb_rules *r);

/*
 * The node for entries directly in the root; then, going down, the node for entries inside `dir`
 * (full relative path) whose parent directory has node `n`. Cheap when `dir` has no rules of its
 * own (returns `n`). Thread-safe; NULL only when out of memory.
 */
const struct sb_rules_node *sb_rules_root(struct sb_rules *r);
const struct sb_rules_node *sb_rules_enter(struct sb_rules *r, const struct sb_rules_node *n,
	const char *dir);

/*
 * Is the entry `path` (relative to the root; its last component starts at `name`) in that directory
 * excluded? Thread-safe, allocates nothing, time bounded by pattern length x path length per
 * pattern.
 */
bool sb_rules_match(const struct sb_rules_node *n, const char *path, const char *name, bool is_dir);

/* The answer for one path, looking at its parents first. */
bool sb_rules_excluded(struct sb_rules *r, const char *path, bool is_dir);

/*
 * A copy with the patterns (and tracked texts) that `keep` wants. It is asked for each, those of
 * one list in their order, and must not touch the rules. NULL: no memory.
 */
typedef bool (
	*sb_rules_keep_fn)(enum sb_rules_source src, const char *dir, const char *text, void *arg);
struct sb_rules *sb_rules_filter(struct sb_rules *from, sb_rules_keep_fn keep, void *arg,
	struct sb_error *err);

/* True when there is no pattern at all. */
bool sb_rules_empty(const struct sb_rules *r);

/*
 * The compiled form that is sent to the peer and frozen with the base (versioned, canonical order),
 * its digest, and back. Decode takes hostile bytes.
 */
int sb_rules_encode(const struct sb_rules *r, struct sb_buf *out, struct sb_error *err);
struct sb_rules *sb_rules_decode(const void *data, size_t len, struct sb_error *err);
int sb_rules_digest(const struct sb_rules *r, struct sb_digest *out, struct sb_error *err);

#endif
