/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_ENVIRON_H
#define SB_TOOL_ENVIRON_H

#include <stdbool.h>

#include <base/strlist.h>

/* Environments as lists "NAME=VALUE". */

#define SB_ENVIRON_NAME_MAX 255

/* A letter or underscore, then letters, digits and underscores, SB_ENVIRON_NAME_MAX at most. */
bool sb_environ_name_ok(const char *name);

/* A letter or underscore, then letters, digits, underscores, then '='. */
bool sb_environ_valid(const char *entry);

/* Sets one "NAME=VALUE", replacing an earlier one of that name. SB_E_INVAL for a bad name. */
int sb_environ_set(struct sb_strlist *env, const char *entry, struct sb_error *err);

/*
 * This process's environment; with `filtered`, without what looks like a secret. Then `more` (may
 * be NULL) on top, as it is.
 */
int sb_environ_build(bool filtered, const char *const *more, struct sb_strlist *out,
	struct sb_error *err);

/*
 * The file that `name` means with the PATH of `env` (relative entries of it are ignored); a name
 * with a slash is itself. A new string. SB_E_NOTFOUND, or SB_E_DENIED for one that may not be
 * executed.
 */
int sb_environ_find(const struct sb_strlist *env, const char *name, char **out,
	struct sb_error *err);

#endif
