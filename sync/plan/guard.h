/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_GUARD_H
#define SBSYNC_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include <sync/tree/manifest.h>

/*
 * Names that could do something to the machine that takes them from a sandbox; guard-tree.h judges
 * plans by them. Names are compared without regard to case and to the trailing dots and spaces that
 * some file systems drop.
 */
enum sb_guard {
	SB_GUARD_NONE,
	SB_GUARD_PROJECT,  /* we obey it in later runs: not accepted */
	SB_GUARD_AUTOEXEC, /* a tool runs it by itself: accepted, but reported */
};

/*
 * What stands at a path named .git decides which repository git works on: only a directory that is
 * new, or stays one, is harmless. A file or symlink leads git to any other directory with a
 * configuration in it. Types are enum sb_entry_type, 0: nothing.
 */
static inline bool
sb_guard_redirects(uint8_t old_type, uint8_t new_type)
{
	return new_type != SB_ENTRY_DIR || (old_type && old_type != SB_ENTRY_DIR);
}

/*
 * Does a component of the path spell .git in another way, or is the path named .git and
 * `redirects`?
 */
bool sb_guard_git_name(const char *path, bool redirects);

/* What we or other tools make of a file of this name. */
enum sb_guard sb_guard_path(const char *path);

/* What a path is to the git directory in which it lies. */
enum sb_guard_git {
	SB_GUARD_GIT_NONE,   /* data */
	SB_GUARD_GIT_CONFIG, /* says what git runs and how it works */
	SB_GUARD_GIT_PATH,   /* says where git looks for that */
	SB_GUARD_GIT_STATE,  /* a half-done operation, whose rest git does or runs */
};

/* `rel` is beneath a git directory, at any depth. */
enum sb_guard_git sb_guard_git_class(const char *rel);

/*
 * Is this the name .git under any of the spellings that file systems take for it (case, git~1,
 * invisible code points)? Is it `name`, without regard to case, trailing dots and spaces?
 */
bool sb_guard_is_git(const char *leaf);
bool sb_guard_is_named(const char *leaf, const char *name);

/* Does a symlink at `path` with this target lead out of the root? */
bool sb_guard_escapes(const char *path, const char *target);

#endif
