/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_CHANGES_H
#define SB_HOST_CHANGES_H

#include <base/cleanup.h>
#include <sb/host-snapshot.h>

/* A list of at most `max` changes; `more` says that there were others. */
struct sb_changes {
	struct sb_host_change *v;
	uint64_t *ino; /* of the entry, to pair renames; same length */
	size_t n, cap, max;
	bool more;
};

int sb_changes_add(struct sb_changes *c, enum sb_host_change_kind kind, char type, const char *path,
	const char *from, uint64_t ino, struct sb_error *err);
/* Turns a removed and an added path of one inode and type into a rename, and sorts by path. */
void sb_changes_finish(struct sb_changes *c);
/* The directory was renamed: that it and what is in it was removed under the old path is no news.
 */
void sb_changes_forget(struct sb_changes *c, const char *path);
void sb_changes_free(struct sb_changes *c);
SB_CLEANUP_VALUE(sb_changes, sb_changes_free)

/*
 * Compares two directory trees of one file system lineage (a clone keeps inode numbers and change
 * times of what it did not touch) and adds the differences. Nothing is followed, other file systems
 * are not entered.
 */
int sb_changes_compare(int old_dir, int new_dir, const struct sb_host_call *call,
	struct sb_changes *out, struct sb_error *err);
/* The same of one `name` in two directories, whose path is `at` ("" for the root). */
int sb_changes_compare_name(int old_dir, int new_dir, const char *at, const char *name,
	const struct sb_host_call *call, struct sb_changes *out, struct sb_error *err);

#endif
