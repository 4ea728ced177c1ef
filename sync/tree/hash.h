/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_HASH_H
#define SBSYNC_HASH_H

#include <stdint.h>

#include <sb/error.h>
#include <sync/tree/digest.h>

/* The digest of the regular file `name` in `dirfd` (no symlink followed), read from its start. */
int sb_hash_file(int dirfd, const char *name, struct sb_digest *out, struct sb_error *err);
/*
 * The same for an open file; at most `len` bytes of it; `out_len` (may be NULL) is how many there
 * were.
 */
int sb_hash_fd(int fd, uint64_t len, struct sb_digest *out, uint64_t *out_len,
	struct sb_error *err);

#endif
