/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_PATHGLOB_H
#define SB_HOST_PATHGLOB_H

#include <stdbool.h>

/*
 * Shell globs: `*`, `?`, `[a-z]`, `[!a-z]`, `[[:alpha:]]`, and a backslash before what means
 * itself. A character is one of UTF-8, or a byte that is none. A star goes back to the last star
 * only, so the time is bounded by the product of both lengths.
 */
#define SB_PATHGLOB_MAX 4096 /* bytes of a pattern that callers should let in */

/* Matches a name, a leading dot of it, too. */
bool sb_pathglob_name(const char *pattern, const char *name);
/*
 * Matches a path part by part; a part `**` stands for any number of parts. Only a dot matches a
 * dot at the beginning of a part.
 */
bool sb_pathglob_path(const char *pattern, const char *path);

#endif
