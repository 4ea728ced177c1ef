/* SPDX-License-Identifier: MIT */
/* Holds on snapshots of the btrfs storage: empty files. */
#include "config.h"

#include <host/storage/storage-btrfs-priv.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/str.h>

static char *
place(const char *id, const char *snap, const char *tag)
{
	return tag ? sb_str_printf("%s/%s/%s", id, snap, tag) : sb_str_printf("%s/%s", id, snap);
}

unsigned
sb_storage_btrfs_holds(struct sb_storage_btrfs *b, const char *id, const char *snap)
{
	sb_autofree char *path = place(id, snap, NULL);
	int fd = path ? openat(b->holdsfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	sb_autoclosedir DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	unsigned n = 0;

	if (!d && fd >= 0)
		(void)close(fd);
	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	return n;
}

int
sb_storage_btrfs_hold(struct sb_storage *st, const char *id, const char *snap, const char *tag,
	struct sb_error *err)
{
	struct sb_storage_btrfs *b = (struct sb_storage_btrfs *)st;
	sb_autoclose int there = sb_storage_btrfs_open_at(b, id, snap, err);
	sb_autofree char *dir = place(id, snap, NULL);
	sb_autofree char *path = place(id, snap, tag);
	sb_autoclose int fd = -1;

	if (there < 0)
		return there;
	if (!dir || !path)
		return sb_fail(err, SB_E_NOMEM, "hold");
	if ((mkdirat(b->holdsfd, id, 0700) < 0 && errno != EEXIST) ||
		(mkdirat(b->holdsfd, dir, 0700) < 0 && errno != EEXIST))
		return sb_fail_errno(err, "make .holds/%s", dir);
	fd = openat(b->holdsfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return sb_fail(err, SB_E_EXISTS, "snapshot %s is held already with tag %s", snap,
			tag);
	if (fd < 0)
		return sb_fail_errno(err, "make .holds/%s", path);
	return sb_storage_btrfs_commit(b, err);
}

int
sb_storage_btrfs_release(struct sb_storage *st, const char *id, const char *snap, const char *tag,
	struct sb_error *err)
{
	struct sb_storage_btrfs *b = (struct sb_storage_btrfs *)st;
	sb_autoclose int there = sb_storage_btrfs_open_at(b, id, snap, err);
	sb_autofree char *dir = place(id, snap, NULL);
	sb_autofree char *path = place(id, snap, tag);

	if (there < 0)
		return there;
	if (!dir || !path)
		return sb_fail(err, SB_E_NOMEM, "hold");
	if (unlinkat(b->holdsfd, path, 0) < 0)
		return errno == ENOENT ? sb_fail(err, SB_E_HOLD_NOT_FOUND, "%s: %s on snapshot %s",
						 sb_code_text(SB_E_HOLD_NOT_FOUND), tag, snap) :
					 sb_fail_errno(err, "remove .holds/%s", path);
	(void)unlinkat(b->holdsfd, dir, AT_REMOVEDIR);
	return sb_storage_btrfs_commit(b, err);
}
