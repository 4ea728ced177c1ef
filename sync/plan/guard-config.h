/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_GUARD_CONFIG_H
#define SBSYNC_GUARD_CONFIG_H

#include <stddef.h>

#include <base/cleanup.h>
#include <base/strlist.h>

/*
 * What the user's git configuration makes git read or run, as it is written there: a hooks
 * directory within the tree, a script of the tree as filter. No sandbox may change such a thing.
 */
struct sb_guard_config {
	struct sb_strlist includes; /* further files of configuration, from this file's directory */
	struct sb_strlist hooks;    /* directories of hooks, from the top of a working tree */
	struct sb_strlist words;    /* words of commands, and files like configuration; likewise */
	struct sb_strlist tops;     /* core.worktree: tops, from the git directory */
};
void sb_guard_config_free(struct sb_guard_config *c);
SB_CLEANUP_VALUE(sb_guard_config, sb_guard_config_free)

/* Adds what this text names; at most 4096 words in all. */
int sb_guard_config_read(struct sb_guard_config *c, const char *text, size_t len,
	struct sb_error *err);

/* Adds what `from` has in its lists of hooks and words. */
int sb_guard_config_join(struct sb_guard_config *c, const struct sb_guard_config *from,
	struct sb_error *err);

/* Names that git runs in a directory of hooks; ends with NULL. */
extern const char *const sb_guard_config_hooks[];

#endif
