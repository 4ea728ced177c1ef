/* SPDX-License-Identifier: MIT */
/* Which storage a host works on: the one it was told, or the best that works where it is. */
#include "config.h"

#include <host/storage/storage.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <base/str.h>
#include <host/storage/btrfs.h>

static const char *const names[] = { [SB_HOST_ZFS] = "zfs",
	[SB_HOST_LOCAL_DISK] = "local-disk",
	[SB_HOST_OVERLAY] = "overlay",
	[SB_HOST_BTRFS] = "btrfs",
	[SB_HOST_STORAGE_AUTO] = "auto" };

#define NOBODY (-1)

const char *
sb_host_storage_name(enum sb_host_storage s)
{
	return (unsigned)s <= SB_HOST_STORAGE_AUTO ? names[s] : "unknown";
}

bool
sb_host_storage_from(const char *name, enum sb_host_storage *out)
{
	for (unsigned i = 0; i <= SB_HOST_STORAGE_AUTO; i++)
		if (strcmp(names[i], name) == 0) {
			*out = (enum sb_host_storage)i;
			return true;
		}
	return false;
}

static bool
is_type(int dir, const char *name, mode_t type)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IFMT) == type;
}

/* Directories that are there for other reasons than a session. */
static bool
is_other(int dir, const char *name, const char *bases)
{
	struct stat a, b;

	return name[0] == '.' || strcmp(name, "lost+found") == 0 ||
		(bases && stat(bases, &a) == 0 && fstatat(dir, name, &b, 0) == 0 &&
			a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/* The storage whose sessions are in the directory, or NOBODY. */
static int
owner(const char *root, const char *bases)
{
	sb_autoclosedir DIR *d = opendir(root);
	struct dirent *e;

	if (!d)
		return NOBODY;
	if (is_type(dirfd(d), "log", S_IFREG) && is_type(dirfd(d), "layers", S_IFDIR))
		return SB_HOST_OVERLAY;
	if (is_type(dirfd(d), ".snaps", S_IFDIR))
		return SB_HOST_BTRFS;
	while ((e = readdir(d)))
		if (!is_other(dirfd(d), e->d_name, bases) && is_type(dirfd(d), e->d_name, S_IFDIR))
			return SB_HOST_LOCAL_DISK;
	return NOBODY;
}

/* The dataset that is mounted at `path`, as a new string; NULL: none. */
static char *
dataset_at(const char *path)
{
	sb_autofree char *real = realpath(path, NULL);
	sb_autofclose FILE *f = fopen("/proc/self/mountinfo", "re");
	sb_autofree char *line = NULL;
	char *found = NULL;
	size_t cap = 0;

	while (f && real && getline(&line, &cap, f) > 0) {
		char at[4096], type[64], source[1024];
		const char *dash = strstr(line, " - ");

		if (!dash || sscanf(line, "%*d %*d %*s %*s %4095s", at) != 1 ||
			sscanf(dash, " - %63s %1023s", type, source) != 2 || strcmp(at, real) != 0)
			continue;
		/* What was mounted last is on top. */
		free(found);
		found = NULL;
		if ((strcmp(type, "zfs") == 0 || strcmp(type, "fuse.zfs") == 0) && source[0] != '/')
			found = strdup(source);
	}
	return found;
}

/* The datasets that belong to the one at the sessions' place; `keep` owns the names. */
static int
name_datasets(struct sb_host_opts *o, const char *dataset, struct sb_strlist *keep,
	struct sb_error *err)
{
	const int pool = (int)strcspn(dataset, "/");
	const char *slash = strrchr(dataset, '/');
	size_t n = keep->n;

	sb_strlist_addf(keep, "%.*s", pool, dataset);
	if (slash)
		sb_strlist_add(keep, dataset);
	else
		sb_strlist_addf(keep, "%s/sessions", dataset);
	sb_strlist_addf(keep, "%.*s/bases", slash ? (int)(slash - dataset) : pool, dataset);
	if (sb_strlist_check(keep, err) < 0)
		return SB_E_NOMEM;
	o->pool = keep->v[n];
	o->sessions_dataset = keep->v[n + 1];
	if (!o->bases_dataset)
		o->bases_dataset = keep->v[n + 2];
	return 0;
}

static struct sb_storage *
open_kind(const struct sb_host_opts *o, enum sb_host_storage kind, int lock_fd,
	struct sb_error *err)
{
	struct sb_storage *st = NULL;

	switch (kind) {
	case SB_HOST_ZFS: st = sb_storage_zfs_open(o, lock_fd, err); break;
	case SB_HOST_LOCAL_DISK: st = sb_storage_local_open(o, err); break;
	case SB_HOST_OVERLAY: st = sb_storage_overlay_open(o, err); break;
	case SB_HOST_BTRFS: st = sb_storage_btrfs_open(o, err); break;
	case SB_HOST_STORAGE_AUTO: break;
	}
	if (st && o->default_quota && !st->ops->quota) {
		(void)sb_fail(err, SB_E_UNSUPPORTED,
			"storage %s cannot enforce a default quota here", st->ops->name);
		st->ops->close(st);
		return NULL;
	}
	return st;
}

/* A directory that has the sessions of one storage is not handed to another. */
static int
check_owner(const struct sb_host_opts *o, struct sb_error *err)
{
	int was = o->storage == SB_HOST_ZFS || !o->sessions_root_dir ?
		NOBODY :
		owner(o->sessions_root_dir, o->bases_dir);

	if (was == NOBODY || was == (int)o->storage)
		return 0;
	return sb_fail(err, SB_E_INVAL,
		"%s has what storage %s keeps: use storage %s, or another directory for %s",
		o->sessions_root_dir, names[was], names[was], names[o->storage]);
}

static bool
on_btrfs(const char *dir)
{
	sb_autoclose int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && sb_btrfs_is(fd);
}

/* What the place of the sessions says; the rest is found out by trying. */
static int
look(struct sb_host_opts *o, struct sb_strlist *keep, char why[SB_STORAGE_WHY_MAX],
	struct sb_error *err)
{
	sb_autofree char *dataset = NULL;
	int r, was;

	if (o->sessions_dataset || (o->pool && !o->sessions_root_dir)) {
		o->storage = SB_HOST_ZFS;
		(void)snprintf(why, SB_STORAGE_WHY_MAX, "a pool is configured");
		return 0;
	}
	if (!o->sessions_root_dir) {
		sb_strlist_addf(keep, "%s/sessions", o->state_dir);
		if (sb_strlist_check(keep, err) < 0)
			return SB_E_NOMEM;
		o->sessions_root_dir = keep->v[keep->n - 1];
	}
	r = sb_file_mkdirs(o->sessions_root_dir, 0700, err);
	if (r < 0)
		return r;
	was = owner(o->sessions_root_dir, o->bases_dir);
	dataset = dataset_at(o->sessions_root_dir);
	if (was != NOBODY) {
		o->storage = (enum sb_host_storage)was;
		(void)snprintf(why, SB_STORAGE_WHY_MAX, "%.150s has what storage %s keeps",
			o->sessions_root_dir, names[was]);
	} else if (dataset) {
		o->storage = SB_HOST_ZFS;
		(void)snprintf(why, SB_STORAGE_WHY_MAX, "%.150s is the dataset %.80s",
			o->sessions_root_dir, dataset);
		return name_datasets(o, dataset, keep, err);
	}
	return 0;
}

/* Btrfs where the directory is on it, else an overlay, else plain directories. */
static struct sb_storage *
try_all(struct sb_host_opts *o, int lock_fd, char why[SB_STORAGE_WHY_MAX], struct sb_error *err)
{
	struct sb_error no = { 0 }, last = { 0 };
	struct sb_storage *st = NULL;

	if (on_btrfs(o->sessions_root_dir)) {
		o->storage = SB_HOST_BTRFS;
		st = open_kind(o, SB_HOST_BTRFS, lock_fd, &no);
		if (st)
			(void)snprintf(why, SB_STORAGE_WHY_MAX, "%.150s is on btrfs",
				o->sessions_root_dir);
	}
	if (!st && (no.code == 0 || no.code == SB_E_UNSUPPORTED)) {
		o->storage = SB_HOST_OVERLAY;
		st = open_kind(o, SB_HOST_OVERLAY, lock_fd, &last);
		if (st)
			(void)snprintf(why, SB_STORAGE_WHY_MAX, "overlays work on %.150s",
				o->sessions_root_dir);
		else
			no = last;
	}
	if (st || no.code != SB_E_UNSUPPORTED) {
		if (!st && err)
			*err = no;
		return st;
	}
	o->storage = SB_HOST_LOCAL_DISK;
	st = open_kind(o, SB_HOST_LOCAL_DISK, lock_fd, err);
	if (st)
		(void)snprintf(why, SB_STORAGE_WHY_MAX, "no storage with snapshots works: %.180s",
			no.msg);
	return st;
}

struct sb_storage *
sb_storage_open(struct sb_host_opts *o, struct sb_strlist *keep, int lock_fd,
	char why[SB_STORAGE_WHY_MAX], struct sb_error *err)
{
	if (o->storage != SB_HOST_STORAGE_AUTO) {
		(void)snprintf(why, SB_STORAGE_WHY_MAX, "it is configured");
		return check_owner(o, err) < 0 ? NULL : open_kind(o, o->storage, lock_fd, err);
	}
	if (look(o, keep, why, err) < 0)
		return NULL;
	return o->storage == SB_HOST_STORAGE_AUTO ? try_all(o, lock_fd, why, err) :
						    open_kind(o, o->storage, lock_fd, err);
}
