/* SPDX-License-Identifier: MIT */
/* Listings and sizes of the btrfs storage, and whether a workspace changed. */
#include "config.h"

#include <host/storage/storage-btrfs-priv.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/file.h>
#include <base/str.h>
#include <host/storage/idcheck.h>
#include <host/storage/treecopy.h>

uint64_t
sb_storage_btrfs_quota(struct sb_storage_btrfs *b, const char *id)
{
	sb_auto(sb_buf) struct sb_buf text;

	if (sb_file_read(b->quotafd, id, 64, &text, NULL) < 0)
		return 0;
	return strtoull((const char *)text.data, NULL, 10);
}

void
sb_storage_btrfs_snaps_free(struct sb_storage_btrfs_snap *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].name);
	free(v);
}

static int
by_age(const void *a, const void *b)
{
	const struct sb_storage_btrfs_snap *x = a, *y = b;

	if (x->info.made != y->info.made)
		return x->info.made < y->info.made ? -1 : 1;
	return x->info.id < y->info.id ? -1 : x->info.id > y->info.id;
}

static int
add_snap(struct sb_storage_btrfs *b, const char *id, const char *name,
	struct sb_storage_btrfs_snap *out, struct sb_error *err)
{
	sb_autoclose int fd = sb_storage_btrfs_open_at(b, id, name, err);
	int r = fd < 0 ? fd : sb_btrfs_info(fd, &out->info, err);

	if (r < 0)
		return r;
	out->holds = sb_storage_btrfs_holds(b, id, name);
	out->name = strdup(name);
	return out->name ? 0 : sb_fail(err, SB_E_NOMEM, "list of snapshots");
}

int
sb_storage_btrfs_snaps(struct sb_storage_btrfs *b, const char *id,
	struct sb_storage_btrfs_snap **out, size_t *out_n, struct sb_error *err)
{
	int fd = openat(b->snapsfd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	sb_autoclosedir DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct sb_storage_btrfs_snap *v = NULL;
	struct dirent *e;
	size_t n = 0, cap = 0;
	int r = 0;

	*out = NULL;
	*out_n = 0;
	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		return errno == ENOENT ? 0 : sb_fail_errno(err, "open .snaps/%s", id);
	}
	while (r == 0 && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		if (n == cap) {
			size_t more = cap ? cap * 2 : 8;
			struct sb_storage_btrfs_snap *w = reallocarray(v, more, sizeof *w);

			if (!w) {
				r = sb_fail(err, SB_E_NOMEM, "list of snapshots");
				break;
			}
			v = w;
			cap = more;
		}
		r = add_snap(b, id, e->d_name, &v[n], err);
		n += r == 0;
	}
	if (r < 0) {
		sb_storage_btrfs_snaps_free(v, n);
		return r;
	}
	if (n)
		qsort(v, n, sizeof *v, by_age);
	*out = v;
	*out_n = n;
	return 0;
}

int
sb_storage_btrfs_used(struct sb_storage *st, const char *id, uint64_t *out, struct sb_error *err)
{
	sb_autoclose int fd =
		sb_storage_btrfs_open_at((struct sb_storage_btrfs *)st, id, NULL, err);

	return fd < 0 ? fd : sb_treecopy_used(fd, out, err);
}

/* The snapshot of another session that has this identity. */
static int
find_origin(struct sb_storage_btrfs *b, const char *id, const uint8_t uuid[16], char **out_id,
	char **out_snap, struct sb_error *err)
{
	static const uint8_t none[16];
	int dup = openat(b->snapsfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;
	int r = 0;

	if (!d) {
		if (dup >= 0)
			(void)close(dup);
		return sb_fail_errno(err, "read .snaps");
	}
	while (r == 0 && !*out_id && memcmp(uuid, none, 16) != 0 && (e = readdir(d))) {
		struct sb_storage_btrfs_snap *v;
		size_t n;

		if (e->d_name[0] == '.' || strcmp(e->d_name, id) == 0)
			continue;
		r = sb_storage_btrfs_snaps(b, e->d_name, &v, &n, err);
		for (size_t i = 0; r == 0 && i < n && !*out_id; i++)
			if (memcmp(v[i].info.uuid, uuid, 16) == 0) {
				*out_id = strdup(e->d_name);
				*out_snap = strdup(v[i].name);
				if (!*out_id || !*out_snap)
					r = sb_fail(err, SB_E_NOMEM, "list of sessions");
			}
		if (r == 0 || n)
			sb_storage_btrfs_snaps_free(v, n);
	}
	return r;
}

/* The newest of the snapshots that were taken of the workspace, or the one it was made from. */
static const struct sb_storage_btrfs_snap *
stands_on(const struct sb_storage_btrfs_snap *v, size_t n, const struct sb_btrfs_info *now)
{
	for (size_t i = n; i-- > 0;)
		if (memcmp(v[i].info.parent_uuid, now->uuid, 16) == 0)
			return &v[i];
	for (size_t i = n; i-- > 0;)
		if (memcmp(v[i].info.uuid, now->parent_uuid, 16) == 0)
			return &v[i];
	return NULL;
}

/* Where it is noted which snapshot the workspace of that identity was made from. */
static const char *
line_path(const char *id, const uint8_t uuid[16], char *out, size_t size)
{
	char hex[33];

	(void)snprintf(out, size, ".lines/%s/%s", id, sb_str_hex(uuid, 16, hex));
	return out;
}

int
sb_storage_btrfs_line(struct sb_storage_btrfs *b, const char *id, const char *work,
	const char *snap, struct sb_error *err)
{
	sb_autoclose int fd = openat(b->rootfd, work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autofree char *dir = sb_str_printf(".lines/%s", id);
	struct sb_btrfs_info info;
	char path[300];
	int r = fd < 0 || !dir ? sb_fail_errno(err, "open %s", work) :
				 sb_btrfs_info(fd, &info, err);

	if (r < 0)
		return r;
	if ((mkdirat(b->rootfd, ".lines", 0700) < 0 && errno != EEXIST) ||
		(mkdirat(b->rootfd, dir, 0700) < 0 && errno != EEXIST))
		return sb_fail_errno(err, "make %s", dir);
	(void)line_path(id, info.uuid, path, sizeof path);
	(void)unlinkat(b->rootfd, path, 0);
	return symlinkat(snap, b->rootfd, path) < 0 ? sb_fail_errno(err, "make %s", path) : 0;
}

/* The snapshot before `v[at]`: of the same workspace, or what that was made from. */
static const char *
parent_of(struct sb_storage_btrfs *b, const char *id, const struct sb_storage_btrfs_snap *v,
	size_t n, size_t at, char name[SB_HOST_NAME_MAX + 1])
{
	char path[300];
	ssize_t len;

	for (size_t i = at; i-- > 0;)
		if (memcmp(v[i].info.parent_uuid, v[at].info.parent_uuid, 16) == 0)
			return v[i].name;
	len = readlinkat(b->rootfd, line_path(id, v[at].info.parent_uuid, path, sizeof path), name,
		SB_HOST_NAME_MAX);
	name[len > 0 ? len : 0] = '\0';
	for (size_t i = 0; i < n && len > 0; i++)
		if (strcmp(v[i].name, name) == 0)
			return name;
	return NULL;
}

static int
list_one(struct sb_storage_btrfs *b, const char *id, bool measure, sb_storage_entry_fn fn,
	void *arg, struct sb_error *err)
{
	sb_autoclose int fd = sb_storage_btrfs_open_at(b, id, NULL, err);
	sb_autofree char *path = sb_str_printf("%s/%s", b->root, id);
	sb_autofree char *origin_id = NULL;
	sb_autofree char *origin_snap = NULL;
	struct sb_storage_btrfs_snap *v = NULL;
	struct sb_storage_entry e = { .id = id, .mountpoint = path };
	const struct sb_storage_btrfs_snap *on;
	char name[SB_HOST_NAME_MAX + 1];
	struct sb_btrfs_info info;
	size_t n = 0;
	int r = fd < 0 ? fd : sb_btrfs_info(fd, &info, err);

	if (r == 0)
		r = sb_storage_btrfs_snaps(b, id, &v, &n, err);
	if (r == 0)
		r = find_origin(b, id, info.parent_uuid, &origin_id, &origin_snap, err);
	if (r == 0 && measure)
		r = sb_treecopy_used(fd, &e.used, err);
	if (r == 0) {
		e.origin_id = origin_id;
		e.origin_snap = origin_snap;
		e.created_s = info.made_s;
		e.quota = sb_storage_btrfs_quota(b, id);
		e.parent = (on = stands_on(v, n, &info)) ? on->name : NULL;
		r = fn(&e, arg, err);
	}
	for (size_t i = 0; i < n && r >= 0; i++) {
		struct sb_storage_entry s = { .id = id,
			.snap = v[i].name,
			.created_s = v[i].info.made_s,
			.holds = v[i].holds,
			.parent = parent_of(b, id, v, n, i, name) };

		r = fn(&s, arg, err);
	}
	sb_storage_btrfs_snaps_free(v, n);
	return r < 0 ? r : 0;
}

int
sb_storage_btrfs_list(struct sb_storage *st, const char *id, sb_storage_entry_fn fn, void *arg,
	struct sb_error *err)
{
	struct sb_storage_btrfs *b = (struct sb_storage_btrfs *)st;
	sb_autoclosedir DIR *d = id ? NULL : opendir(b->root);
	struct dirent *e;
	int r = 0;

	if (id)
		return list_one(b, id, true, fn, arg, err);
	if (!d)
		return sb_fail_errno(err, "read %s", b->root);
	while (r == 0 && (e = readdir(d))) {
		sb_autoclose int fd = -1;

		if (sb_idcheck_session(e->d_name, NULL) < 0)
			continue;
		fd = sb_storage_btrfs_open_at(b, e->d_name, NULL, NULL);
		if (fd >= 0 && sb_btrfs_is_subvolume(fd))
			r = list_one(b, e->d_name, false, fn, arg, err);
	}
	return r;
}

/* Whether anything but a time of access differs from the snapshot. */
static int
touched(int now, int snap, uint64_t since, struct sb_error *err)
{
	struct sb_btrfs_inode *v = NULL;
	size_t n = 0;
	int r = sb_btrfs_touched(now, since, &v, &n, err);

	for (size_t i = 0; i < n && r == 0; i++) {
		struct sb_btrfs_inode was;

		r = sb_btrfs_inode(snap, v[i].ino, &was, err);
		if (r >= 0)
			r = r == 0 || was.ctime.tv_sec != v[i].ctime.tv_sec ||
				was.ctime.tv_nsec != v[i].ctime.tv_nsec;
	}
	free(v);
	return r;
}

int
sb_storage_btrfs_unchanged(struct sb_storage *st, const char *id, char out[SB_HOST_NAME_MAX + 1],
	struct sb_error *err)
{
	struct sb_storage_btrfs *b = (struct sb_storage_btrfs *)st;
	sb_autoclose int now = sb_storage_btrfs_open_at(b, id, NULL, err);
	const struct sb_storage_btrfs_snap *on;
	struct sb_storage_btrfs_snap *v = NULL;
	sb_autoclose int snap = -1;
	struct sb_btrfs_info info;
	uint64_t since;
	size_t n = 0;
	int r = now < 0 ? now : 0;

	/* Only what is in the trees can be compared. */
	if (r == 0 && syncfs(now) < 0)
		r = sb_fail_errno(err, "sync the workspace");
	if (r == 0)
		r = sb_btrfs_info(now, &info, err);
	if (r == 0)
		r = sb_storage_btrfs_snaps(b, id, &v, &n, err);
	on = r == 0 ? stands_on(v, n, &info) : NULL;
	if (on) {
		(void)snprintf(out, SB_HOST_NAME_MAX + 1, "%s", on->name);
		since = info.made > on->info.made ? info.made : on->info.made;
		if (info.changed > since) {
			snap = r = sb_storage_btrfs_open_at(b, id, on->name, err);
			if (r >= 0)
				r = touched(now, snap, since, err);
		}
		r = r < 0 ? r : !r;
	}
	sb_storage_btrfs_snaps_free(v, n);
	return r;
}
