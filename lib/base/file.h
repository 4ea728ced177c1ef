/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_FILE_H
#define SB_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <base/buf.h>
#include <sb/error.h>

/*
 * Replaces (or makes) `name` in `dirfd` so that a crash leaves the old or the new bytes: temporary
 * file, write, fsync, rename, fsync of the directory. The temporary file is removed on failure.
 */
int sb_file_replace(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
	struct sb_error *err);

/* Reads a whole file of at most `max` bytes into `out` (initialised by this call; freed by the caller). */
int sb_file_read(int dirfd, const char *name, size_t max, struct sb_buf *out, struct sb_error *err);

/* Writes or reads all of it, through EINTR and short counts. sb_file_read_full stops at the end: returns the count. */
int sb_file_write_all(int fd, const void *data, size_t len, struct sb_error *err);
ssize_t sb_file_read_full(int fd, void *data, size_t len, struct sb_error *err);

/* Makes the directory path (absolute or from the current one) with its parents, mode 0700 for new ones. */
int sb_file_mkdirs(const char *path, mode_t mode, struct sb_error *err);

/*
 * OFD write lock on the whole file `fd`. Waits until `deadline_ms` from now (0: does not wait).
 * SB_E_LOCKED when another holds it. The lock goes with the last descriptor of this open file.
 */
int sb_file_lock(int fd, int wait_ms, struct sb_error *err);

#endif
