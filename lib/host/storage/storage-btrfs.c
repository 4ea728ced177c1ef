/* SPDX-License-Identifier: MIT */
/* Workspaces as subvolumes of btrfs. Design: doc/STORAGE.md. */
#include "config.h"

#include <host/storage/storage-btrfs-priv.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <base/path.h>
#include <base/str.h>
#include <base/strlist.h>
#include <host/storage/idcheck.h>
#include <host/storage/rootcheck.h>
#include <host/storage/treecopy.h>

#define LOCK_WAIT_MS 2000
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static struct sb_storage_btrfs *
self(struct sb_storage *st)
{
	return (struct sb_storage_btrfs *)st;
}

const char *
sb_storage_btrfs_work(struct sb_storage_btrfs *b, char out[40])
{
	(void)snprintf(out, 40, SB_STORAGE_BTRFS_WORK "%u", atomic_fetch_add(&b->seq, 1));
	return out;
}

int
sb_storage_btrfs_commit(struct sb_storage_btrfs *b, struct sb_error *err)
{
	return b->durability == SB_HOST_DURABLE_NONE ? 0 : sb_btrfs_commit(b->rootfd, err);
}

static int
no_snapshot(const char *snap, struct sb_error *err)
{
	return sb_fail(err, SB_E_SNAPSHOT_NOT_FOUND, "%s: %s",
		sb_code_text(SB_E_SNAPSHOT_NOT_FOUND), snap);
}

int
sb_storage_btrfs_open_at(struct sb_storage_btrfs *b, const char *id, const char *snap,
	struct sb_error *err)
{
	sb_autofree char *path = snap ? sb_str_printf("%s/%s", id, snap) : strdup(id);
	int fd = path ? openat(snap ? b->snapsfd : b->rootfd, path, DIR_FLAGS) : -1;

	if (!path)
		return sb_fail(err, SB_E_NOMEM, "session %s", id);
	if (fd >= 0)
		return fd;
	if (errno != ENOENT)
		return sb_fail_errno(err, "open %s", path);
	return snap ? no_snapshot(snap, err) :
		      sb_fail(err, SB_E_NOTFOUND, "%s/%s is not there", b->root, id);
}

static int
mountpoint(const struct sb_storage_btrfs *b, const char *id, char **out, struct sb_error *err)
{
	*out = sb_str_printf("%s/%s", b->root, id);
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "path of %s", id);
}

static int
open_base(struct sb_storage_btrfs *b, const char *base, struct sb_error *err)
{
	int fd, r = sb_idcheck_base_dir(base, err);

	if (r < 0)
		return r;
	fd = b->basesfd >= 0 ? openat(b->basesfd, base, DIR_FLAGS) : -1;
	if (fd >= 0)
		return fd;
	if (b->basesfd >= 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		return sb_fail_errno(err, "open base image %s", base);
	return sb_fail(err, SB_E_BASE_NOT_FOUND, "%s: %s%s", sb_code_text(SB_E_BASE_NOT_FOUND),
		base, b->basesfd < 0 ? " (no bases directory is configured)" : "");
}

/* A directory is copied, by reflinks where they are possible, aside and then put in place. */
static int
copy_base(struct sb_storage_btrfs *b, int from, const char *id, const struct sb_host_call *call,
	struct sb_error *err)
{
	sb_autoclose int to = -1;
	char work[40];
	int r = sb_btrfs_create(b->rootfd, sb_storage_btrfs_work(b, work), err);

	if (r == 0) {
		to = openat(b->rootfd, work, DIR_FLAGS);
		r = to < 0 ? sb_fail_errno(err, "open %s", work) : sb_treecopy(from, to, call, err);
	}
	if (r == 0 && syncfs(to) < 0)
		r = sb_fail_errno(err, "sync the copy");
	if (r == 0 && renameat2(b->rootfd, work, b->rootfd, id, RENAME_NOREPLACE) < 0)
		r = sb_fail_errno(err, "put %s in place", id);
	if (r < 0)
		(void)sb_btrfs_destroy(b->rootfd, work, NULL);
	return r;
}

static int
make_from(struct sb_storage_btrfs *b, const char *id, const struct sb_storage_source *src,
	const struct sb_host_call *call, struct sb_error *err)
{
	sb_autoclose int from = -1;
	int r;

	if (src->fd >= 0)
		return sb_storage_btrfs_receive(b, id, src->fd, call, err);
	if (src->from_id)
		from = r = sb_storage_btrfs_open_at(b, src->from_id, src->from_snap, err);
	else if (src->base)
		from = r = open_base(b, src->base, err);
	else
		return sb_btrfs_create(b->rootfd, id, err);
	if (r < 0)
		return r;
	/* A subvolume of another file system is a directory to us. */
	if (sb_btrfs_is_subvolume(from)) {
		struct sb_error why = { 0 };

		r = sb_btrfs_snapshot(from, b->rootfd, id, false, &why);
		if (r == 0 || why.sys != EXDEV) {
			if (r < 0 && err)
				*err = why;
			return r;
		}
	}
	return copy_base(b, from, id, call, err);
}

static int
set_quota(struct sb_storage_btrfs *b, const char *id, uint64_t quota, struct sb_error *err)
{
	sb_autoclose int fd = sb_storage_btrfs_open_at(b, id, NULL, err);
	struct sb_btrfs_info info;
	char text[32];
	int r = fd < 0 ? fd : sb_btrfs_info(fd, &info, err);

	(void)snprintf(text, sizeof text, "%llu\n", (unsigned long long)quota);
	if (r == 0)
		r = sb_file_replace(b->quotafd, id, text, strlen(text), 0600, err);
	return r < 0 ? r : sb_btrfs_quota_set(b->rootfd, info.id, quota, err);
}

static int btrfs_destroy(struct sb_storage *st, const char *id, struct sb_error *err);

static int
btrfs_create(struct sb_storage *st, const char *id, const struct sb_storage_source *src,
	const struct sb_host_call *call, char **out, struct sb_error *err)
{
	struct sb_storage_btrfs *b = self(st);
	struct stat s;
	int r = 0;

	if (fstatat(b->rootfd, id, &s, AT_SYMLINK_NOFOLLOW) == 0)
		return sb_fail(err, SB_E_EXISTS, "%s/%s exists already", b->root, id);
	if (src->quota) {
		r = sb_btrfs_quota_check(b->rootfd, err);
		if (r == 0)
			r = sb_btrfs_quota_enable(b->rootfd, err);
	}
	if (r == 0 && mkdirat(b->snapsfd, id, 0700) < 0 && errno != EEXIST)
		r = sb_fail_errno(err, "make %s/.snaps/%s", b->root, id);
	if (r < 0)
		return r;
	r = make_from(b, id, src, call, err);
	if (r == 0 && src->quota)
		r = set_quota(b, id, src->quota, err);
	if (r == 0)
		r = sb_storage_btrfs_commit(b, err);
	if (r == 0)
		r = mountpoint(b, id, out, err);
	if (r < 0)
		(void)btrfs_destroy(st, id, NULL);
	return r;
}

/* Every snapshot of the session, and its directories. */
static int
destroy_snaps(struct sb_storage_btrfs *b, const char *id, struct sb_error *err)
{
	sb_autoclose int dir = openat(b->snapsfd, id, DIR_FLAGS);
	int copy = dir >= 0 ? openat(dir, ".", DIR_FLAGS) : -1;
	sb_autoclosedir DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *e;
	int r = 0;

	if (!d) {
		if (copy >= 0)
			(void)close(copy);
		return dir < 0 && errno == ENOENT ? 0 : sb_fail_errno(err, "open .snaps/%s", id);
	}
	while (r == 0 && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = sb_btrfs_destroy(dir, e->d_name, err);
	if (r == 0 && unlinkat(b->snapsfd, id, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = sb_fail_errno(err, "remove .snaps/%s", id);
	if (r == 0)
		r = sb_path_remove_tree(b->holdsfd, id, err);
	if (r == 0) {
		sb_autoclose int lines = openat(b->rootfd, ".lines", DIR_FLAGS);

		(void)unlinkat(b->quotafd, id, 0);
		if (lines >= 0)
			r = sb_path_remove_tree(lines, id, err);
	}
	return r;
}

static int
btrfs_destroy(struct sb_storage *st, const char *id, struct sb_error *err)
{
	struct sb_storage_btrfs *b = self(st);
	int r = sb_btrfs_destroy(b->rootfd, id, err);

	if (r == 0)
		r = destroy_snaps(b, id, err);
	return r < 0 ? r : sb_storage_btrfs_commit(b, err);
}

static int
btrfs_mount(struct sb_storage *st, const char *id, char **out, struct sb_error *err)
{
	sb_autoclose int fd = sb_storage_btrfs_open_at(self(st), id, NULL, err);

	if (fd < 0)
		return fd;
	if (!sb_btrfs_is_subvolume(fd))
		return sb_fail(err, SB_E_STORAGE, "%s/%s is not a subvolume", self(st)->root, id);
	return mountpoint(self(st), id, out, err);
}

int
sb_storage_btrfs_name(struct sb_storage_btrfs *b, int from, const char *id, const char *snap,
	struct sb_error *err)
{
	sb_autoclose int dir = openat(b->snapsfd, id, DIR_FLAGS);
	int r;

	if (dir < 0)
		return sb_fail_errno(err, "open .snaps/%s", id);
	r = sb_btrfs_snapshot(from, dir, snap, true, err);
	return r == SB_E_EXISTS ? sb_fail(err, SB_E_SNAPSHOT_EXISTS, "%s: %s",
					  sb_code_text(SB_E_SNAPSHOT_EXISTS), snap) :
				  r;
}

/*
 * The kernel takes it of a live tree, but writes to the disk what is in memory one file after the
 * other before that: who writes meanwhile would have a newer file beside an older one in it.
 */
static int
snapshot_live(struct sb_storage *st, const char *id, const char *snap,
	const struct sb_storage_live *live, struct sb_storage_taken *out, struct sb_error *err)
{
	sb_autoclose int from = sb_storage_btrfs_open_at(self(st), id, NULL, err);

	struct sb_error why = { 0 };
	int r = from < 0 ? from : 0;

	if (out)
		*out = (struct sb_storage_taken){ 0 };
	if (r == 0 && live && live->freeze)
		r = live->freeze(live->arg, true, err);
	if (r == 0)
		r = sb_storage_btrfs_name(self(st), from, id, snap, err);
	if (live && live->freeze && from >= 0 && live->freeze(live->arg, false, &why) < 0 && r == 0)
		r = sb_fail(err, why.code, "%s", why.msg);
	return r;
}

static int
btrfs_snapshot(struct sb_storage *st, const char *id, const char *snap, struct sb_error *err)
{
	return snapshot_live(st, id, snap, NULL, NULL, err);
}

static int
btrfs_snapshot_delete(struct sb_storage *st, const char *id, const char *snap, struct sb_error *err)
{
	struct sb_storage_btrfs *b = self(st);
	sb_autoclose int fd = sb_storage_btrfs_open_at(b, id, snap, err);
	sb_autoclose int dir = -1;
	int r;

	if (fd < 0)
		return fd;
	if (sb_storage_btrfs_holds(b, id, snap) > 0)
		return sb_fail(err, SB_E_SNAPSHOT_HELD, "%s: %s", sb_code_text(SB_E_SNAPSHOT_HELD),
			snap);
	dir = openat(b->snapsfd, id, DIR_FLAGS);
	r = dir < 0 ? sb_fail_errno(err, "open .snaps/%s", id) : sb_btrfs_destroy(dir, snap, err);
	return r < 0 ? r : sb_storage_btrfs_commit(b, err);
}

static char *
btrfs_snapshot_name(struct sb_storage *st, const char *id, const char *snap)
{
	return sb_str_printf("%s/.snaps/%s/%s", self(st)->root, id, snap);
}

/* Removes what is newer than `snap`, or (`check`) finds out whether that is possible. */
static int
drop_later(struct sb_storage_btrfs *b, const char *id, const char *snap, bool check,
	struct sb_error *err)
{
	sb_autoclose int dir = openat(b->snapsfd, id, DIR_FLAGS);
	struct sb_storage_btrfs_snap *v = NULL;
	bool later = false;
	size_t n = 0;
	int r = sb_storage_btrfs_snaps(b, id, &v, &n, err);

	for (size_t i = 0; i < n && r == 0; i++) {
		if (later && v[i].holds > 0)
			r = sb_fail(err, SB_E_SNAPSHOT_HELD,
				"%s: %s is newer than %s and would be lost",
				sb_code_text(SB_E_SNAPSHOT_HELD), v[i].name, snap);
		else if (later && !check)
			r = sb_btrfs_destroy(dir, v[i].name, err);
		later |= strcmp(v[i].name, snap) == 0;
	}
	sb_storage_btrfs_snaps_free(v, n);
	return r;
}

/* The workspace is exchanged in one step; the old one goes. */
static int
exchange(struct sb_storage_btrfs *b, int from, const char *id, const char *snap,
	const struct sb_storage_live *live, struct sb_error *err)
{
	uint64_t quota = sb_storage_btrfs_quota(b, id);
	sb_autofree char *path = NULL;
	char work[40];
	int r = mountpoint(b, id, &path, err);

	if (r == 0)
		r = sb_btrfs_snapshot(from, b->rootfd, sb_storage_btrfs_work(b, work), false, err);
	if (r < 0)
		return r;
	r = sb_storage_btrfs_line(b, id, work, snap, err);
	if (r == 0 && live && live->detach)
		r = live->detach(live->arg, true, err);
	if (r == 0 && renameat2(b->rootfd, work, b->rootfd, id, RENAME_EXCHANGE) < 0)
		r = sb_fail_errno(err, "exchange %s", path);
	if (live && live->attach) {
		int e = live->attach(live->arg, path, r == 0 ? err : NULL);

		r = r == 0 ? e : r;
	}
	if (r == 0 && quota)
		r = set_quota(b, id, quota, err);
	if (r == 0)
		r = sb_storage_btrfs_commit(b, err);
	/* What somebody still has open lives until they let go. */
	(void)sb_btrfs_destroy(b->rootfd, work, NULL);
	return r;
}

static int
rollback_live(struct sb_storage *st, const char *id, const char *snap, bool drop,
	const struct sb_storage_live *live, struct sb_error *err)
{
	struct sb_storage_btrfs *b = self(st);
	sb_autoclose int from = sb_storage_btrfs_open_at(b, id, snap, err);
	int r = from < 0 ? from : 0;

	if (r == 0 && drop)
		r = drop_later(b, id, snap, true, err);
	if (r == 0)
		r = exchange(b, from, id, snap, live, err);
	if (r == 0 && drop)
		r = drop_later(b, id, snap, false, err);
	return r;
}

static int
btrfs_rollback(struct sb_storage *st, const char *id, const char *snap, struct sb_error *err)
{
	return rollback_live(st, id, snap, true, NULL, err);
}

static int
btrfs_space(struct sb_storage *st, struct sb_storage_space *out, struct sb_error *err)
{
	struct statvfs v;
	uint64_t total;

	if (fstatvfs(self(st)->rootfd, &v) < 0)
		return sb_fail_errno(err, "space of %s", self(st)->root);
	out->size = (uint64_t)v.f_blocks * v.f_frsize;
	out->used = (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
	out->free = (uint64_t)v.f_bavail * v.f_frsize;
	total = out->used + out->free;
	out->capacity = total ? (double)out->used / (double)total : 0;
	out->fragmentation = -1;
	(void)snprintf(out->state, sizeof out->state, "ONLINE");
	return 0;
}

static int
btrfs_bases(struct sb_storage *st, struct sb_strlist *out, struct sb_error *err)
{
	struct sb_storage_btrfs *b = self(st);
	int dup = b->basesfd >= 0 ? openat(b->basesfd, ".", DIR_FLAGS) : -1;
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;

	if (b->basesfd < 0)
		return 0;
	if (!d) {
		if (dup >= 0)
			(void)close(dup);
		return sb_fail_errno(err, "read %s", b->bases);
	}
	while ((e = readdir(d))) {
		struct stat s;

		if (sb_idcheck_base_dir(e->d_name, NULL) == 0 &&
			fstatat(b->basesfd, e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISDIR(s.st_mode))
			sb_strlist_add(out, e->d_name);
	}
	return sb_strlist_check(out, err);
}

/* Work that a crash cut off, and snapshots of sessions that are gone. */
static int
clean_up(struct sb_storage_btrfs *b, struct sb_error *err)
{
	sb_autoclosedir DIR *d = opendir(b->root);
	int dup = openat(b->snapsfd, ".", DIR_FLAGS);
	sb_autoclosedir DIR *snaps = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;
	struct stat st;
	int r = 0;

	if (!d || !snaps) {
		if (!snaps && dup >= 0)
			(void)close(dup);
		return sb_fail_errno(err, "read %s", b->root);
	}
	while (r == 0 && (e = readdir(d)))
		if (sb_str_starts(e->d_name, SB_STORAGE_BTRFS_WORK))
			r = sb_btrfs_destroy(b->rootfd, e->d_name, err);
	while (r == 0 && (e = readdir(snaps)))
		if (e->d_name[0] != '.' &&
			fstatat(b->rootfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
			errno == ENOENT)
			r = destroy_snaps(b, e->d_name, err);
	return r;
}

/* Destroyed subvolumes are the kernel's to clean up. */
static int
btrfs_sweep(struct sb_storage *st, struct sb_error *err)
{
	(void)st;
	(void)err;
	return 0;
}

static void
close_fd(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

static void
btrfs_close(struct sb_storage *st)
{
	struct sb_storage_btrfs *b = self(st);

	close_fd(b->rootfd);
	close_fd(b->snapsfd);
	close_fd(b->holdsfd);
	close_fd(b->quotafd);
	close_fd(b->basesfd);
	close_fd(b->lockfd);
	free(b->root);
	free(b->bases);
	free(b);
}

#define BTRFS_OPS \
	.version = 1, .name = "btrfs", .snapshots = true, .close = btrfs_close, \
	.create = btrfs_create, .destroy = btrfs_destroy, .mount = btrfs_mount, \
	.list = sb_storage_btrfs_list, .sweep = btrfs_sweep, .used = sb_storage_btrfs_used, \
	.space = btrfs_space, .bases = btrfs_bases, .snapshot = btrfs_snapshot, \
	.snapshot_delete = btrfs_snapshot_delete, .snapshot_name = btrfs_snapshot_name, \
	.rollback = btrfs_rollback, .hold = sb_storage_btrfs_hold, \
	.release = sb_storage_btrfs_release, .diff = sb_storage_btrfs_diff, \
	.look = sb_storage_btrfs_look, .send = sb_storage_btrfs_send, \
	.snapshot_live = snapshot_live, .rollback_live = rollback_live, \
	.unchanged = sb_storage_btrfs_unchanged

static const struct sb_storage_ops plain_ops = { BTRFS_OPS };
static const struct sb_storage_ops quota_ops = { BTRFS_OPS, .quota = true };

static int
open_dir(struct sb_storage_btrfs *b, const char *name, int *out, struct sb_error *err)
{
	if (mkdirat(b->rootfd, name, 0700) < 0 && errno != EEXIST)
		return sb_fail_errno(err, "make %s/%s", b->root, name);
	*out = openat(b->rootfd, name, DIR_FLAGS);
	return *out < 0 ? sb_fail_errno(err, "open %s/%s", b->root, name) : 0;
}

static int
open_places(struct sb_storage_btrfs *b, const struct sb_host_opts *o, struct sb_error *err)
{
	int r;

	if (!o->sessions_root_dir || o->sessions_root_dir[0] != '/')
		return sb_fail(err, SB_E_INVAL,
			"storage btrfs needs an absolute sessions root directory");
	r = sb_file_mkdirs(o->sessions_root_dir, 0700, err);
	if (r == 0)
		r = sb_rootcheck(o->sessions_root_dir, &o->log, err);
	if (r < 0)
		return r;
	b->root = realpath(o->sessions_root_dir, NULL);
	b->bases = o->bases_dir ? strdup(o->bases_dir) : NULL;
	if (!b->root || (o->bases_dir && !b->bases))
		return sb_fail_errno(err, "directory %s", o->sessions_root_dir);
	r = b->rootfd = sb_path_open_root(b->root, err);
	if (r >= 0 && !sb_btrfs_is(b->rootfd))
		r = sb_fail(err, SB_E_UNSUPPORTED, "%s is not on btrfs", b->root);
	if (r < 0)
		return r;
	b->lockfd = openat(b->rootfd, ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = b->lockfd < 0 ? sb_fail_errno(err, "open %s/.lock", b->root) :
			    sb_file_lock(b->lockfd, LOCK_WAIT_MS, err);
	if (r == 0)
		r = open_dir(b, ".snaps", &b->snapsfd, err);
	if (r == 0)
		r = open_dir(b, ".holds", &b->holdsfd, err);
	if (r == 0)
		r = open_dir(b, ".quota", &b->quotafd, err);
	if (r == 0 && b->bases)
		r = b->basesfd = sb_path_open_root(b->bases, err);
	return r < 0 ? r : 0;
}

/* Whether subvolumes can be made and removed here. */
static int
probe(struct sb_storage_btrfs *b, struct sb_error *err)
{
	char work[40];
	int r = sb_btrfs_create(b->rootfd, sb_storage_btrfs_work(b, work), err);

	if (r == 0)
		r = sb_btrfs_destroy(b->rootfd, work, err);
	return r < 0 ?
		sb_wrap(err, SB_E_UNSUPPORTED, "storage btrfs does not work on %s", b->root) :
		0;
}

struct sb_storage *
sb_storage_btrfs_open(const struct sb_host_opts *o, struct sb_error *err)
{
	struct sb_storage_btrfs *b = calloc(1, sizeof *b);
	int r;

	if (!b) {
		(void)sb_fail(err, SB_E_NOMEM, "storage btrfs");
		return NULL;
	}
	b->rootfd = b->snapsfd = b->holdsfd = b->quotafd = b->basesfd = b->lockfd = -1;
	b->log_to = o->log;
	b->durability = o->durability;
	r = open_places(b, o, err);
	if (r == 0)
		r = clean_up(b, err);
	if (r == 0)
		r = probe(b, err);
	if (r == 0 && o->default_quota)
		r = sb_btrfs_quota_check(b->rootfd, err);
	if (r < 0) {
		btrfs_close(&b->st);
		return NULL;
	}
	b->st.ops = sb_btrfs_quota_check(b->rootfd, NULL) == 0 ? &quota_ops : &plain_ops;
	return &b->st;
}
