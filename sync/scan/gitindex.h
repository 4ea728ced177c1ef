/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_GITINDEX_H
#define SBSYNC_GITINDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/error.h>

/*
 * The paths in a git index, versions 2 to 4. We read it ourselves, instead of asking `git ls-files`
 * or a library: it is wanted at every scan, git may not be there, and neither shall work in a
 * directory that a sandbox had its hands on. Checksums are not looked at, which git may leave out.
 */
struct sb_gitindex_entry {
	const char *path; /* until the call returns */
	size_t len;
	bool gitlink; /* another repository begins there */
};

/* Ends the reading with its result when that is not 0. */
typedef int (*sb_gitindex_fn)(const struct sb_gitindex_entry *e, void *arg);

/*
 * Calls `fn` for each path, in the index's order (sorted, in a good one), for each stage of a
 * conflict once. `hash_size` is 20, or 32 for a repository with SHA-256. An index that is split
 * gives the name of the file with the rest of it: `shared` (65 bytes: hex digits, or "").
 * Directories that a sparse index has instead of files are left out. SB_E_CORRUPT: no index.
 */
int sb_gitindex_read(const uint8_t *data, size_t len, size_t hash_size, sb_gitindex_fn fn,
	void *arg, char *shared, struct sb_error *err);

#endif
