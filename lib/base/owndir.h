/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_OWNDIR_H
#define SB_BASE_OWNDIR_H

#include <stdbool.h>

#include <sb/error.h>

/*
 * Directories whose content is believed: sessions, bases, consents, records of sandboxes. Whoever
 * can write there decides what we run. So each of them must belong to the user this process runs
 * as, must not be a symbolic link, and nobody else may write to it; else SB_E_DENIED with the
 * command that repairs it. What others could only read is closed to them (0700).
 */

/*
 * Opens `top` (absolute or from the current directory) and then, one after the other, the
 * components of `rel` ("" for `top` alone), each checked. `create`: makes what is missing, 0700;
 * else a missing one is SB_E_NOTFOUND. Returns a descriptor of the last one.
 */
int sb_owndir_open(const char *top, const char *rel, bool create, struct sb_error *err);

/* The checks for a directory that is open; `path` is for messages. */
int sb_owndir_check(int fd, const char *path, struct sb_error *err);

#endif
