/* SPDX-License-Identifier: MIT */
/* What changed between two states of a btrfs workspace: only inodes that were touched are looked
 * at. */
#include "config.h"

#include <host/storage/storage-btrfs-priv.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/path.h>

struct diff {
	const struct sb_host_call *call;
	struct sb_changes *out;
	int old, now; /* subvolumes */
};

/* Where a directory of either state is; -1: it has none there, or not a directory. */
static int
dir_at(int root, const char *path, struct stat *st)
{
	int fd = sb_path_open(root, path, O_RDONLY | O_DIRECTORY, 0, NULL);

	if (fd >= 0 && fstat(fd, st) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

/*
 * One name of a directory that both have. A file that is the same inode is looked at for itself, a
 * directory, too.
 */
static int
compare_name(struct diff *d, int old, int now, const char *path, const char *name,
	struct sb_error *err)
{
	struct stat a, b;
	bool was = fstatat(old, name, &a, AT_SYMLINK_NOFOLLOW) == 0;
	bool is = fstatat(now, name, &b, AT_SYMLINK_NOFOLLOW) == 0;

	if (was && is && a.st_ino == b.st_ino && (a.st_mode & S_IFMT) == (b.st_mode & S_IFMT))
		return 0;
	return sb_changes_compare_name(old, now, path, name, d->call, d->out, err);
}

/* The names of `from`; with `missing`, only those that the other directory does not have. */
static int
each_name(struct diff *d, int old, int now, const char *path, bool missing, struct sb_error *err)
{
	int from = missing ? old : now, other = missing ? now : old;
	int copy = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *e;
	int r = 0;

	if (!dir) {
		if (copy >= 0)
			(void)close(copy);
		return sb_fail_errno(err, "read %s", path);
	}
	while (r == 0 && !d->out->more && (e = readdir(dir))) {
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (!missing || fstatat(other, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			r = compare_name(d, old, now, path, e->d_name, err);
	}
	return r;
}

static int
on_dir(const char *path, void *arg, struct sb_error *err)
{
	struct diff *d = arg;
	struct stat a, b;
	sb_autoclose int old = dir_at(d->old, path, &a);
	sb_autoclose int now = dir_at(d->now, path, &b);
	int r;

	/* A new or moved one comes with its parent, which was touched as well. */
	if (old < 0 || now < 0 || a.st_ino != b.st_ino)
		return 0;
	r = each_name(d, old, now, path, false, err);
	return r < 0 ? r : each_name(d, old, now, path, true, err);
}

static int
on_file(const char *path, void *arg, struct sb_error *err)
{
	struct diff *d = arg;
	const char *leaf = path;
	struct stat a, b;
	sb_autoclose int old = sb_path_open_parent(d->old, path, &leaf, NULL);
	sb_autoclose int now = sb_path_open_parent(d->now, path, &leaf, NULL);
	sb_autofree char *at = leaf > path ? strndup(path, (size_t)(leaf - path - 1)) : strdup("");

	if (old < 0 || now < 0 || fstatat(old, leaf, &a, AT_SYMLINK_NOFOLLOW) < 0 ||
		fstatat(now, leaf, &b, AT_SYMLINK_NOFOLLOW) < 0 || a.st_ino != b.st_ino)
		return 0;
	return at ? sb_changes_compare_name(old, now, at, leaf, d->call, d->out, err) :
		    sb_fail(err, SB_E_NOMEM, "diff");
}

static int
compare_touched(struct diff *d, uint64_t since, struct sb_error *err)
{
	struct sb_btrfs_inode *v = NULL;
	size_t n = 0;
	int r = sb_btrfs_touched(d->now, since, &v, &n, err);

	for (size_t i = 0; i < n && r == 0 && !d->out->more; i++) {
		r = sb_check_alive(d->call ? d->call->cancel : NULL,
			d->call ? d->call->deadline : SB_NEVER, "diff", err);
		if (r == 0)
			r = sb_btrfs_paths(d->now, v[i].ino, S_ISDIR(v[i].mode) ? on_dir : on_file,
				d, err);
	}
	free(v);
	return r;
}

/* Whether the old state was taken of the workspace that the new one is, or was taken of, before it.
 */
static bool
is_before(const struct sb_btrfs_info *old, const struct sb_btrfs_info *now, bool live)
{
	const uint8_t *volume = live ? now->uuid : now->parent_uuid;

	return memcmp(old->parent_uuid, volume, 16) == 0 && (live || old->made < now->made);
}

int
sb_storage_btrfs_diff(struct sb_storage *st, const char *id, const char *from, const char *to,
	const struct sb_host_call *call, struct sb_changes *out, struct sb_error *err)
{
	struct sb_storage_btrfs *b = (struct sb_storage_btrfs *)st;
	sb_autoclose int old = sb_storage_btrfs_open_at(b, id, from, err);
	sb_autoclose int now = old < 0 ? -1 : sb_storage_btrfs_open_at(b, id, to, err);
	struct diff d = { call, out, old, now };
	struct sb_btrfs_info was, is;
	int r = old < 0 ? old : now < 0 ? now : 0;

	if (r == 0 && !to && syncfs(now) < 0)
		r = sb_fail_errno(err, "sync the workspace");
	if (r == 0)
		r = sb_btrfs_info(old, &was, err);
	if (r == 0)
		r = sb_btrfs_info(now, &is, err);
	if (r < 0)
		return r;
	return is_before(&was, &is, !to) ? compare_touched(&d, was.made, err) :
					   sb_changes_compare(old, now, call, out, err);
}

int
sb_storage_btrfs_look(struct sb_storage *st, const char *id, const char *from, const char *to,
	sb_storage_states_fn fn, void *arg, struct sb_error *err)
{
	struct sb_storage_btrfs *b = (struct sb_storage_btrfs *)st;
	sb_autoclose int old = sb_storage_btrfs_open_at(b, id, from, err);
	sb_autoclose int now = old < 0 ? -1 : sb_storage_btrfs_open_at(b, id, to, err);

	return old < 0 ? old : now < 0 ? now : fn(old, now, arg, err);
}
