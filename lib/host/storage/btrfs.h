/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_BTRFS_H
#define SB_HOST_BTRFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <sb/host.h>

/* What the btrfs storage asks of the kernel, by ioctl; no program is executed. */

struct sb_btrfs_info {
	uint64_t id;
	uint8_t uuid[16],
		parent_uuid[16]; /* the latter of what it is a snapshot of, zero for none */
	uint64_t changed;        /* transaction that wrote to it last, once committed */
	uint64_t made;           /* transaction that made it */
	int64_t made_s;          /* Unix time */
};

/* Whether the open file is on btrfs; whether it is the root of a subvolume. */
bool sb_btrfs_is(int fd);
bool sb_btrfs_is_subvolume(int fd);
int sb_btrfs_info(int fd, struct sb_btrfs_info *out, struct sb_error *err);

/* A new, empty subvolume; a snapshot of the subvolume `from`. SB_E_EXISTS. Committed on return. */
int sb_btrfs_create(int dirfd, const char *name, struct sb_error *err);
int sb_btrfs_snapshot(int from, int dirfd, const char *name, bool readonly, struct sb_error *err);
/* Removes the subvolume with those that somebody made inside it. Not there is success. */
int sb_btrfs_destroy(int dirfd, const char *name, struct sb_error *err);
/* What was changed so far survives a power loss. */
int sb_btrfs_commit(int fd, struct sb_error *err);

/* An inode that a transaction after `since` touched. */
struct sb_btrfs_inode {
	uint64_t ino;
	mode_t mode;
	struct timespec ctime;
};
/* All of them in the subvolume `fd`, by number; `*out` is freed by the caller. */
int sb_btrfs_touched(int fd, uint64_t since, struct sb_btrfs_inode **out, size_t *out_n,
	struct sb_error *err);
/* The inode of that number: 1, or 0: there is none. */
int sb_btrfs_inode(int fd, uint64_t ino, struct sb_btrfs_inode *out, struct sb_error *err);
/* The paths of an inode from the root of its subvolume, each to `fn`. */
int sb_btrfs_paths(int fd, uint64_t ino,
	int (*fn)(const char *path, void *arg, struct sb_error *err), void *arg,
	struct sb_error *err);

/* Simple quotas. SB_E_UNSUPPORTED with the reason. */
int sb_btrfs_quota_check(int fd, struct sb_error *err);
int sb_btrfs_quota_enable(int fd, struct sb_error *err);
int sb_btrfs_quota_set(int fd, uint64_t subvolume, uint64_t bytes, struct sb_error *err);

#endif
