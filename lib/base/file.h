/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_FILE_H
#define SB_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <base/buf.h>
#include <sb/error.h>

/*
 * `name` is looked up from `dirfd` (AT_FDCWD works) and symlinks in it are followed, so names from
 * an untrusted tree go through base/path.h instead.
 */

/*
 * Replaces (or makes) `name` so that a crash leaves the old or the new bytes: temporary file beside
 * it, write, fsync, rename, fsync of the directory. `mode` is taken as it is, without the umask. A
 * symlink as last component is itself replaced. The temporary file is removed on failure.
 */
int sb_file_replace(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
	struct sb_error *err);

/*
 * Reads a whole regular file into `out` (initialised by this call, also on failure; freed by the
 * caller). SB_E_LIMIT for more than `max` bytes, SB_E_INVAL for what is not a regular file.
 */
int sb_file_read(int dirfd, const char *name, size_t max, struct sb_buf *out, struct sb_error *err);

/*
 * Writes or reads all of it, through EINTR, short counts and (by waiting) non-blocking descriptors.
 * sb_file_read_full stops at the end of the file: returns the count.
 */
int sb_file_write_all(int fd, const void *data, size_t len, struct sb_error *err);
ssize_t sb_file_read_full(int fd, void *data, size_t len, struct sb_error *err);

/* write(2) that answers EPIPE without raising SIGPIPE, whatever the program has set up for it. */
ssize_t sb_file_write_nosig(int fd, const void *data, size_t len);

/*
 * Makes the directory path (absolute or from the current one) with its parents. New ones get `mode`
 * (minus the umask); existing ones are left as they are.
 */
int sb_file_mkdirs(const char *path, mode_t mode, struct sb_error *err);

/*
 * OFD write lock (flock where the kernel has none) on the whole file `fd`, which must be open for
 * writing. Waits at most `wait_ms` (0: does not wait). SB_E_LOCKED when another holds it. The lock
 * goes with the last descriptor of this open file.
 */
int sb_file_lock(int fd, int wait_ms, struct sb_error *err);

/*
 * Gives the lock back and closes the descriptor (-1 is allowed). A mere close would leave it with a
 * child that another thread has forked and that has not come to its exec yet.
 */
void sb_file_unlock(int fd);

#endif
