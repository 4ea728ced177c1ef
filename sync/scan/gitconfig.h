/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_GITCONFIG_H
#define SBSYNC_GITCONFIG_H

#include <limits.h>
#include <stddef.h>

#include <sb/error.h>

/*
 * The text of a git configuration file, variable by variable. Section and name come in lower case,
 * the subsection as it is written (NULL: none); `value` is unquoted, NULL for a name alone (which
 * means true). Names longer than 1023 bytes are cut. Where git would give up, because a line makes
 * no sense, this goes on with the next line: a reader that looks for danger wants to see all of it.
 * Knows nothing of includes.
 */
struct sb_gitconfig_var {
	const char *section, *sub, *name, *value;
};

/* Ends the reading with its result when that is not 0. */
typedef int (*sb_gitconfig_fn)(const struct sb_gitconfig_var *v, void *arg);

int sb_gitconfig_read(const char *text, size_t len, sb_gitconfig_fn fn, void *arg,
	struct sb_error *err);

/*
 * The files that git reads before those of a repository, the weakest first: of the system, and of
 * the user, by the environment. Returns how many there are to look for.
 */
size_t sb_gitconfig_user_files(char out[3][PATH_MAX]);

#endif
