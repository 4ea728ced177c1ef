/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_COMMIT_TIMES_H
#define SBSYNC_COMMIT_TIMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <sb/error.h>

/*
 * The times that a commit gave to files with several names: its later operations on the other names
 * find that time and not the one that the scan saw. All zero: none yet.
 */
struct sb_commit_times {
	struct sb_commit_times_slot {
		uint64_t ino; /* 0: free */
		int64_t mtime;
	} *v;
	size_t n, cap; /* a power of two */
};

/* The commit set the mtime of that file to `mtime`. One with a single name needs no memory. */
int sb_commit_times_set(struct sb_commit_times *t, const struct stat *st, int64_t mtime,
	struct sb_error *err);
/* The mtime that the commit gave to that file; NULL: none. */
const int64_t *sb_commit_times_find(const struct sb_commit_times *t, uint64_t ino);
void sb_commit_times_free(struct sb_commit_times *t);

#endif
