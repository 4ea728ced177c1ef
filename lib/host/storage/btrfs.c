/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/btrfs.h>

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/str.h>

#define SEARCH_BYTES (1u << 18)
#define PATHS_BYTES 65536
#define QUOTA_ENABLE_SIMPLE 4 /* of kernel 6.7 on; older headers lack the name */

bool
sb_btrfs_is(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == BTRFS_SUPER_MAGIC;
}

bool
sb_btrfs_is_subvolume(int fd)
{
	struct stat st;

	return sb_btrfs_is(fd) && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) &&
		st.st_ino == BTRFS_FIRST_FREE_OBJECTID;
}

int
sb_btrfs_info(int fd, struct sb_btrfs_info *out, struct sb_error *err)
{
	struct btrfs_ioctl_get_subvol_info_args a = { 0 };

	/* Success is not always 0. */
	if (ioctl(fd, BTRFS_IOC_GET_SUBVOL_INFO, &a) < 0)
		return sb_fail_errno(err, "ask for a subvolume");
	*out = (struct sb_btrfs_info){ .id = a.treeid,
		.changed = a.ctransid,
		.made = a.otransid,
		.made_s = (int64_t)a.otime.sec };
	memcpy(out->uuid, a.uuid, sizeof out->uuid);
	memcpy(out->parent_uuid, a.parent_uuid, sizeof out->parent_uuid);
	return 0;
}

static int
volume_name(struct btrfs_ioctl_vol_args_v2 *a, const char *name, struct sb_error *err)
{
	int n = snprintf(a->name, sizeof a->name, "%s", name);

	return n < (int)sizeof a->name ?
		0 :
		sb_fail(err, SB_E_INVAL, "name %.40s... is too long", name);
}

int
sb_btrfs_create(int dirfd, const char *name, struct sb_error *err)
{
	struct btrfs_ioctl_vol_args_v2 a = { 0 };
	int r = volume_name(&a, name, err);

	if (r == 0 && ioctl(dirfd, BTRFS_IOC_SUBVOL_CREATE_V2, &a) < 0)
		r = sb_fail_errno(err, "make subvolume %s", name);
	return r;
}

int
sb_btrfs_snapshot(int from, int dirfd, const char *name, bool readonly, struct sb_error *err)
{
	struct btrfs_ioctl_vol_args_v2 a = { .fd = from,
		.flags = readonly ? BTRFS_SUBVOL_RDONLY : 0 };
	int r = volume_name(&a, name, err);

	if (r == 0 && ioctl(dirfd, BTRFS_IOC_SNAP_CREATE_V2, &a) < 0)
		r = sb_fail_errno(err, "make snapshot %s", name);
	return r;
}

static int
destroy_one(int dirfd, const char *name, struct sb_error *err)
{
	struct btrfs_ioctl_vol_args_v2 a = { 0 };
	int r = volume_name(&a, name, err);

	if (r == 0 && ioctl(dirfd, BTRFS_IOC_SNAP_DESTROY_V2, &a) < 0)
		r = errno == ENOENT ? 0 : sb_fail_errno(err, "remove subvolume %s", name);
	return r;
}

/* Subvolumes inside the directory, removed; the rest is left. */
static int
destroy_inner(int dir, unsigned depth, struct sb_error *err)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *e;
	int r = 0;

	if (!d) {
		if (copy >= 0)
			(void)close(copy);
		return sb_fail_errno(err, "read a subvolume");
	}
	while (r == 0 && (e = readdir(d))) {
		sb_autoclose int sub = -1;

		if (e->d_type != DT_DIR || strcmp(e->d_name, ".") == 0 ||
			strcmp(e->d_name, "..") == 0 || depth > 2000)
			continue;
		sub = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = sub < 0 ? sb_fail_errno(err, "open %s", e->d_name) :
			      destroy_inner(sub, depth + 1, err);
		if (r == 0 && sb_btrfs_is_subvolume(sub))
			r = destroy_one(dir, e->d_name, err);
	}
	return r;
}

int
sb_btrfs_destroy(int dirfd, const char *name, struct sb_error *err)
{
	struct sb_error why = { 0 };
	sb_autoclose int fd = -1;
	int r = destroy_one(dirfd, name, &why);

	if (r < 0 && why.sys == ENOTEMPTY) {
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? sb_fail_errno(&why, "open %s", name) : destroy_inner(fd, 0, &why);
		if (r == 0)
			r = destroy_one(dirfd, name, &why);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_btrfs_commit(int fd, struct sb_error *err)
{
	__u64 transid = 0;

	if (ioctl(fd, BTRFS_IOC_START_SYNC, &transid) < 0 ||
		ioctl(fd, BTRFS_IOC_WAIT_SYNC, &transid) < 0)
		return sb_fail_errno(err, "wait for the transaction");
	return 0;
}

struct search {
	struct btrfs_ioctl_search_args_v2 *a;
	int fd;
};

typedef int (*item_fn)(const struct btrfs_ioctl_search_header *h, const uint8_t *item, void *arg,
	struct sb_error *err);

/* Every item of the subvolume within the key of `s`, in order. */
static int
search(struct search *s, item_fn fn, void *arg, struct sb_error *err)
{
	struct btrfs_ioctl_search_key *k = &s->a->key;

	for (;;) {
		struct btrfs_ioctl_search_header h;
		const uint8_t *p = (const uint8_t *)s->a->buf;
		int r = 0;

		k->nr_items = UINT32_MAX;
		s->a->buf_size = SEARCH_BYTES;
		if (ioctl(s->fd, BTRFS_IOC_TREE_SEARCH_V2, s->a) < 0)
			return sb_fail_errno(err, "search a subvolume");
		if (k->nr_items == 0)
			return 0;
		for (uint32_t i = 0; i < k->nr_items && r == 0; i++) {
			memcpy(&h, p, sizeof h);
			r = fn(&h, p + sizeof h, arg, err);
			p += sizeof h + h.len;
		}
		if (r < 0)
			return r;
		k->min_objectid = h.objectid;
		k->min_type = h.type;
		k->min_offset = h.offset + 1;
		if (k->min_offset == 0 && ++k->min_type > UINT8_MAX) {
			k->min_type = 0;
			k->min_objectid++;
		}
	}
}

static int
search_open(struct search *s, int fd, struct sb_error *err)
{
	s->fd = fd;
	s->a = calloc(1, sizeof *s->a + SEARCH_BYTES);
	if (!s->a)
		return sb_fail(err, SB_E_NOMEM, "search");
	s->a->key = (struct btrfs_ioctl_search_key){ .max_offset = UINT64_MAX,
		.max_transid = UINT64_MAX,
		.min_objectid = BTRFS_FIRST_FREE_OBJECTID,
		.max_objectid = BTRFS_LAST_FREE_OBJECTID,
		.max_type = UINT8_MAX };
	return 0;
}

struct inodes {
	uint64_t since;
	struct sb_btrfs_inode *v;
	size_t n, cap;
};

static int
on_inode(const struct btrfs_ioctl_search_header *h, const uint8_t *item, void *arg,
	struct sb_error *err)
{
	struct inodes *l = arg;
	struct btrfs_inode_item in;

	if (h->type != BTRFS_INODE_ITEM_KEY || h->len < sizeof in)
		return 0;
	memcpy(&in, item, sizeof in);
	if (le64toh(in.transid) <= l->since)
		return 0;
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		struct sb_btrfs_inode *v = reallocarray(l->v, cap, sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "list of inodes");
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n++] = (struct sb_btrfs_inode){ .ino = h->objectid,
		.mode = le32toh(in.mode),
		.ctime = { .tv_sec = (int64_t)le64toh(in.ctime.sec),
			.tv_nsec = (long)le32toh(in.ctime.nsec) } };
	return 0;
}

int
sb_btrfs_touched(int fd, uint64_t since, struct sb_btrfs_inode **out, size_t *out_n,
	struct sb_error *err)
{
	struct inodes l = { .since = since };
	struct search s = { 0 };
	int r = search_open(&s, fd, err);

	if (r < 0)
		return r;
	s.a->key.min_transid = since + 1;
	r = search(&s, on_inode, &l, err);
	free(s.a);
	if (r < 0) {
		free(l.v);
		return r;
	}
	*out = l.v;
	*out_n = l.n;
	return 0;
}

int
sb_btrfs_inode(int fd, uint64_t ino, struct sb_btrfs_inode *out, struct sb_error *err)
{
	struct inodes l = { 0 };
	struct search s = { 0 };
	int r = search_open(&s, fd, err);

	if (r < 0)
		return r;
	s.a->key.min_objectid = s.a->key.max_objectid = ino;
	s.a->key.max_type = BTRFS_INODE_ITEM_KEY;
	r = search(&s, on_inode, &l, err);
	free(s.a);
	if (r == 0 && l.n == 1)
		*out = l.v[0];
	free(l.v);
	return r < 0 ? r : l.n == 1;
}

int
sb_btrfs_paths(int fd, uint64_t ino, int (*fn)(const char *path, void *arg, struct sb_error *err),
	void *arg, struct sb_error *err)
{
	sb_autofree struct btrfs_data_container *c = calloc(1, PATHS_BYTES);
	struct btrfs_ioctl_ino_path_args a = { .inum = ino, .size = PATHS_BYTES };
	int r = 0;

	if (!c)
		return sb_fail(err, SB_E_NOMEM, "paths");
	if (ino == BTRFS_FIRST_FREE_OBJECTID)
		return fn("", arg, err);
	a.fspath = (uint64_t)(uintptr_t)c;
	if (ioctl(fd, BTRFS_IOC_INO_PATHS, &a) < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "paths of an inode");
	if (c->elem_missed)
		return sb_fail(err, SB_E_LIMIT, "an inode has too many names");
	for (uint32_t i = 0; i < c->elem_cnt && r == 0; i++)
		r = fn((const char *)c->val + c->val[i], arg, err);
	return r;
}

/* The first line of a file of the file system in /sys. */
static bool
sys_line(int fd, const char *name, char *out, size_t size)
{
	struct btrfs_ioctl_fs_info_args a = { 0 };
	const uint8_t *u = a.fsid;
	sb_autofree char *path = NULL;
	sb_autoclose int f = -1;
	ssize_t n;

	if (ioctl(fd, BTRFS_IOC_FS_INFO, &a) < 0)
		return false;
	path = sb_str_printf("/sys/fs/btrfs/%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
			     "%02x%02x%02x%02x%02x%02x/%s",
		u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12],
		u[13], u[14], u[15], name);
	f = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	n = f >= 0 ? read(f, out, size - 1) : -1;
	if (n < 0)
		return false;
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return true;
}

int
sb_btrfs_quota_check(int fd, struct sb_error *err)
{
	char mode[40];

	if (sys_line(fd, "qgroups/mode", mode, sizeof mode))
		return strcmp(mode, "squota") == 0 ?
			0 :
			sb_fail(err, SB_E_UNSUPPORTED,
				"the file system has classic quotas, which make snapshots take "
				"seconds: disable them (btrfs quota disable)");
	if (sys_line(fd, "qgroups/enabled", mode, sizeof mode) && strcmp(mode, "1") == 0)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"the file system has classic quotas: disable them (btrfs quota disable)");
	return access("/sys/fs/btrfs/features/simple_quota", F_OK) == 0 ?
		0 :
		sb_fail(err, SB_E_UNSUPPORTED, "this kernel has no simple quotas (since 6.7)");
}

int
sb_btrfs_quota_enable(int fd, struct sb_error *err)
{
	struct btrfs_ioctl_quota_ctl_args a = { .cmd = QUOTA_ENABLE_SIMPLE };
	char mode[40];

	if (sys_line(fd, "qgroups/mode", mode, sizeof mode) && strcmp(mode, "squota") == 0)
		return 0;
	if (ioctl(fd, BTRFS_IOC_QUOTA_CTL, &a) < 0 && errno != EEXIST)
		return sb_fail_errno(err, "enable simple quotas");
	return 0;
}

int
sb_btrfs_quota_set(int fd, uint64_t subvolume, uint64_t bytes, struct sb_error *err)
{
	struct btrfs_ioctl_qgroup_limit_args a = { .qgroupid = subvolume,
		.lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes } };

	return ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &a) < 0 ? sb_fail_errno(err, "set a quota") : 0;
}
