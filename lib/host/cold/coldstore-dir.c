/* SPDX-License-Identifier: MIT */
/*
 * Archives in a directory. An object is written beside, synced, and linked to its place, which
 * fails when there is one; so it is whole or not there, and one of two writers wins.
 */
#include "config.h"

#include <host/cold/coldstore.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/file.h>
#include <base/owndir.h>
#include <base/path.h>
#include <base/random.h>
#include <base/str.h>
#include <base/strlist.h>

#define TEMPORARY "tmp"
#define PIECE ((size_t)1 << 20)
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct store {
	struct sb_coldstore st;
	int root;
	char *path;
};

static int
alive(const struct sb_host_call *call, struct sb_error *err)
{
	return call ? sb_check_alive(call->cancel, call->deadline, "cold store", err) : 0;
}

static void
dir_close(struct sb_coldstore *st)
{
	struct store *s = (struct store *)st;

	if (s->root >= 0)
		(void)close(s->root);
	free(s->path);
	free(s);
}

/* The directory of a key, made with its parents; every new one is synced into its parent. */
static int
open_dir_of(const struct store *s, const char *key, const char **leaf, struct sb_error *err)
{
	sb_autoclose int dir = openat(s->root, ".", DIR_FLAGS);
	const char *p = key, *slash;

	if (dir < 0)
		return sb_fail_errno(err, "open %s", s->path);
	while ((slash = strchr(p, '/'))) {
		sb_autofree char *name = strndup(p, (size_t)(slash - p));
		int sub;

		if (!name)
			return sb_fail(err, SB_E_NOMEM, "cold store");
		if (mkdirat(dir, name, 0700) == 0) {
			if (fsync(dir) < 0)
				return sb_fail_errno(err, "sync %s", s->path);
		} else if (errno != EEXIST) {
			return sb_fail_errno(err, "make %s in %s", name, s->path);
		}
		sub = openat(dir, name, DIR_FLAGS);
		if (sub < 0)
			return sb_fail_errno(err, "open %s in %s", name, s->path);
		(void)close(dir);
		dir = sub;
		p = slash + 1;
	}
	*leaf = p;
	return sb_steal_fd(&dir);
}

static int
write_synced(int fd, const uint8_t *data, size_t len, const struct sb_host_call *call,
	struct sb_error *err)
{
	int r = 0;

	for (size_t at = 0; at < len && r == 0; at += PIECE) {
		r = alive(call, err);
		if (r == 0)
			r = sb_file_write_all(fd, data + at, len - at < PIECE ? len - at : PIECE,
				err);
	}
	if (r == 0 && fsync(fd) < 0)
		r = sb_fail_errno(err, "sync");
	return r;
}

static int
dir_put(struct sb_coldstore *st, const char *key, const void *data, size_t len,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct store *s = (struct store *)st;
	sb_autoclose int dir = -1;
	sb_autoclose int tmp = -1;
	sb_autoclose int fd = -1;
	const char *leaf, *unused;
	char name[33];
	uint8_t rnd[16];
	int r = sb_random(rnd, sizeof rnd, err);

	if (r == 0)
		r = sb_coldstore_check_key(key, false, err);
	if (r < 0)
		return r;
	(void)sb_str_hex(rnd, sizeof rnd, name);
	dir = r = open_dir_of(s, key, &leaf, err);
	if (r >= 0)
		tmp = r = open_dir_of(s, TEMPORARY "/x", &unused, err);
	if (r < 0)
		return r;
	fd = openat(tmp, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return sb_fail_errno(err, "make a file in %s", s->path);
	r = write_synced(fd, data, len, call, err);
	if (r < 0)
		r = sb_wrap(err, r, "write %s/%s", s->path, key);
	else if (linkat(tmp, name, dir, leaf, 0) < 0)
		r = errno == EEXIST ? sb_fail(err, SB_E_EXISTS, "%s is there already", key) :
				      sb_fail_errno(err, "put %s in place", key);
	else if (fsync(dir) < 0)
		r = sb_fail_errno(err, "sync the directory of %s", key);
	(void)unlinkat(tmp, name, 0);
	return r;
}

static int
dir_open(const struct store *s, const char *key, struct sb_error *err)
{
	int r = sb_coldstore_check_key(key, false, err);

	return r < 0 ? r : sb_path_open(s->root, key, O_RDONLY, 0, err);
}

static int
dir_get(struct sb_coldstore *st, const char *key, uint64_t at, void *out, size_t len,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct store *s = (struct store *)st;
	sb_autoclose int fd = dir_open(s, key, err);
	uint8_t *to = out;

	if (fd < 0)
		return fd;
	while (len > 0) {
		size_t want = len < PIECE ? len : PIECE;
		ssize_t n;
		int r = alive(call, err);

		if (r < 0)
			return r;
		n = pread(fd, to, want, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sb_fail_errno(err, "read %s/%s", s->path, key);
		if (n == 0)
			return sb_fail(err, SB_E_CORRUPT, "%s/%s is too short", s->path, key);
		to += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int
dir_size(struct sb_coldstore *st, const char *key, uint64_t *out, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct store *s = (struct store *)st;
	sb_autoclose int fd = dir_open(s, key, err);
	struct stat sb;

	(void)call;
	if (fd < 0)
		return fd;
	if (fstat(fd, &sb) < 0)
		return sb_fail_errno(err, "stat %s/%s", s->path, key);
	*out = (uint64_t)sb.st_size;
	return 0;
}

/* The names in a directory, sorted. */
static int
names_of(int dir, struct sb_strlist *out, struct sb_error *err)
{
	int copy = openat(dir, ".", DIR_FLAGS);
	sb_autoclosedir DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *e;

	if (!d) {
		if (copy >= 0)
			(void)close(copy);
		return sb_fail_errno(err, "read the cold store");
	}
	while ((errno = 0, e = readdir(d)))
		if (e->d_name[0] != '.')
			sb_strlist_add(out, e->d_name);
	return errno ? sb_fail_errno(err, "read the cold store") : sb_strlist_check(out, err);
}

struct found {
	char *key;
	uint64_t size;
	int64_t time_s;
};

struct listing {
	const char *prefix;
	struct found *v;
	size_t n;
	const struct sb_host_call *call;
};

static int
keep(struct listing *l, const char *key, const struct stat *sb, struct sb_error *err)
{
	struct found *v = reallocarray(l->v, l->n + 1, sizeof *v);
	char *copy = v ? strdup(key) : NULL;

	if (v)
		l->v = v;
	if (!copy)
		return sb_fail(err, SB_E_NOMEM, "list");
	v[l->n++] = (struct found){ copy, (uint64_t)sb->st_size, (int64_t)sb->st_mtim.tv_sec };
	return 0;
}

static int
walk(struct listing *l, int dir, const char *at, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist names = { 0 };
	size_t want = strlen(l->prefix);
	int r = names_of(dir, &names, err);

	for (size_t i = 0; i < names.n && r == 0; i++) {
		sb_autofree char *key = sb_str_printf("%s%s", at, names.v[i]);
		sb_autofree char *below = key ? sb_str_printf("%s/", key) : NULL;
		sb_autoclose int sub = -1;
		struct stat sb;

		if (!below)
			return sb_fail(err, SB_E_NOMEM, "list");
		r = alive(l->call, err);
		if (r < 0 || strcmp(key, TEMPORARY) == 0 ||
			fstatat(dir, names.v[i], &sb, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(sb.st_mode) && strncmp(key, l->prefix, want) == 0)
			r = keep(l, key, &sb, err);
		if (!S_ISDIR(sb.st_mode) ||
			strncmp(below, l->prefix, strlen(below) < want ? strlen(below) : want) != 0)
			continue;
		sub = openat(dir, names.v[i], DIR_FLAGS);
		if (sub >= 0)
			r = walk(l, sub, below, err);
	}
	return r;
}

static int
by_key(const void *a, const void *b)
{
	return strcmp(((const struct found *)a)->key, ((const struct found *)b)->key);
}

static int
dir_list(struct sb_coldstore *st, const char *prefix, sb_coldstore_entry_fn fn, void *arg,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct store *s = (struct store *)st;
	struct listing l = { .prefix = prefix, .call = call };
	int r = sb_coldstore_check_key(prefix, true, err);

	if (r == 0)
		r = walk(&l, s->root, "", err);
	if (l.n > 0)
		qsort(l.v, l.n, sizeof l.v[0], by_key);
	for (size_t i = 0; i < l.n; i++) {
		struct sb_coldstore_entry e = { l.v[i].key, l.v[i].size, l.v[i].time_s };

		if (r == 0)
			r = fn(&e, arg, err);
		free(l.v[i].key);
	}
	free(l.v);
	return r;
}

static int
dir_remove(struct sb_coldstore *st, const char *key, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct store *s = (struct store *)st;
	sb_autoclose int dir = -1;
	const char *leaf;
	int r = sb_coldstore_check_key(key, false, err);

	(void)call;
	if (r < 0)
		return r;
	dir = sb_path_open_parent(s->root, key, &leaf, err);
	if (dir < 0)
		return dir == SB_E_NOTFOUND ? 0 : dir;
	if (unlinkat(dir, leaf, 0) < 0 && errno != ENOENT)
		return sb_fail_errno(err, "remove %s/%s", s->path, key);
	return fsync(dir) < 0 ? sb_fail_errno(err, "sync the directory of %s", key) : 0;
}

/* Files that writers had not linked when they died. */
static int
dir_sweep(struct sb_coldstore *st, int64_t older_than_s, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct store *s = (struct store *)st;
	sb_auto(sb_strlist) struct sb_strlist names = { 0 };
	sb_autoclose int tmp = openat(s->root, TEMPORARY, DIR_FLAGS);
	int r;

	(void)call;
	if (tmp < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "open %s/%s", s->path, TEMPORARY);
	r = names_of(tmp, &names, err);
	for (size_t i = 0; i < names.n && r == 0; i++) {
		struct stat sb;

		if (fstatat(tmp, names.v[i], &sb, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(sb.st_mode) &&
			(int64_t)sb.st_mtim.tv_sec < (int64_t)time(NULL) - older_than_s)
			(void)unlinkat(tmp, names.v[i], 0);
	}
	return r;
}

static const struct sb_coldstore_ops ops = {
	.name = "directory",
	.close = dir_close,
	.put = dir_put,
	.get = dir_get,
	.size = dir_size,
	.list = dir_list,
	.remove = dir_remove,
	.sweep = dir_sweep,
};

struct sb_coldstore *
sb_coldstore_dir_open(const char *path, struct sb_error *err)
{
	struct store *s = calloc(1, sizeof *s);

	if (!s || !(s->path = strdup(path))) {
		free(s);
		(void)sb_fail(err, SB_E_NOMEM, "cold store");
		return NULL;
	}
	s->st.ops = &ops;
	s->root = sb_owndir_open(path, "", true, err);
	if (s->root < 0) {
		(void)sb_wrap(err, s->root, "cold store");
		dir_close(&s->st);
		return NULL;
	}
	return &s->st;
}
