/* SPDX-License-Identifier: MIT */
/* The storage "local-disk": sessions are plain directories; it has no snapshots and no quota. */
#include "config.h"

#include <host/storage/storage.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/random.h>
#include <base/str.h>
#include <host/storage/idcheck.h>
#include <host/storage/claim.h>
#include <host/storage/rootcheck.h>
#include <host/storage/treecopy.h>

/*
 * Sessions are directories of one root. A name with a dot in front is no session: `.new-<id>` is
 * one being filled, `.dead-...` one being removed. Both appear and vanish by rename, so a session
 * is there whole or not at all.
 */
struct local {
	struct sb_storage st;
	char *root, *bases;
	int rootfd;
	int basesfd; /* -1: none */
	int claimfd; /* holds the lock of sb_claim_lock */
	atomic_bool swept;
};

#define NEW ".new-"
#define DEAD ".dead-"

static struct local *
self(struct sb_storage *st)
{
	return (struct local *)st;
}

static int
mountpoint(const struct local *l, const char *id, char **out, struct sb_error *err)
{
	*out = sb_str_printf("%s/%s", l->root, id);
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "path of %s", id);
}

static int
fill_from(struct local *l, int dir, const char *base, const struct sb_host_call *call,
	struct sb_error *err)
{
	sb_autoclose int from = -1;
	int r = sb_idcheck_base_dir(base, err);

	if (r < 0)
		return r;
	if (l->basesfd < 0)
		return sb_fail(err, SB_E_BASE_NOT_FOUND,
			"%s: %s (no bases directory is configured)",
			sb_code_text(SB_E_BASE_NOT_FOUND), base);
	from = openat(l->basesfd, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return sb_fail(err, SB_E_BASE_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_BASE_NOT_FOUND), base);
	if (from < 0)
		return sb_fail_errno(err, "open base image %s", base);
	r = sb_treecopy(from, dir, call, err);
	return r < 0 ? sb_wrap(err, r, "copy base image %s", base) : 0;
}

static int
local_create(struct sb_storage *st, const char *id, const struct sb_storage_source *src,
	const struct sb_host_call *call, char **out, struct sb_error *err)
{
	struct local *l = self(st);
	sb_autofree char *tmp = sb_str_printf(NEW "%s", id);
	sb_autoclose int dir = -1;
	struct stat stat_buf;
	int r;

	if (!tmp)
		return sb_fail(err, SB_E_NOMEM, "session %s", id);
	if (src->from_id || src->fd >= 0)
		return sb_fail(err, SB_E_NO_SNAPSHOTS, "%s", sb_code_text(SB_E_NO_SNAPSHOTS));
	if (fstatat(l->rootfd, id, &stat_buf, AT_SYMLINK_NOFOLLOW) == 0)
		return sb_fail(err, SB_E_EXISTS, "%s/%s exists already", l->root, id);
	r = sb_path_remove_tree(l->rootfd, tmp, err);
	if (r < 0)
		return r;
	if (mkdirat(l->rootfd, tmp, 0755) < 0)
		return sb_fail_errno(err, "make %s/%s", l->root, tmp);
	dir = openat(l->rootfd, tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		r = sb_fail_errno(err, "open %s/%s", l->root, tmp);
	if (r == 0 && src->base)
		r = fill_from(l, dir, src->base, call, err);
	if (r == 0 && renameat2(l->rootfd, tmp, l->rootfd, id, RENAME_NOREPLACE) < 0)
		r = sb_fail_errno(err, "rename %s/%s", l->root, tmp);
	if (r == 0)
		r = mountpoint(l, id, out, err);
	if (r < 0) {
		(void)sb_path_remove_tree(l->rootfd, tmp, NULL);
		return r;
	}
	(void)fsync(l->rootfd);
	return 0;
}

static int
local_destroy(struct sb_storage *st, const char *id, struct sb_error *err)
{
	struct local *l = self(st);
	sb_autofree char *tmp = sb_str_printf(NEW "%s", id);
	uint8_t rnd[8];
	char hex[17], dead[32];
	int r = sb_random(rnd, sizeof rnd, err);

	if (r < 0)
		return r;
	if (!tmp)
		return sb_fail(err, SB_E_NOMEM, "session %s", id);
	(void)snprintf(dead, sizeof dead, DEAD "%s", sb_str_hex(rnd, sizeof rnd, hex));
	r = sb_path_remove_tree(l->rootfd, tmp, err);
	if (r < 0)
		return r;
	if (renameat(l->rootfd, id, l->rootfd, dead) < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "rename %s/%s", l->root, id);
	r = sb_path_remove_tree(l->rootfd, dead, err);
	return r < 0 ? sb_wrap(err, r, "remove session %s", id) : 0;
}

static int
local_mount(struct sb_storage *st, const char *id, char **out, struct sb_error *err)
{
	struct local *l = self(st);
	struct stat s;

	if (fstatat(l->rootfd, id, &s, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "%s/%s", l->root, id);
	if (!S_ISDIR(s.st_mode))
		return sb_fail(err, SB_E_STORAGE, "%s/%s is not a directory", l->root, id);
	return mountpoint(l, id, out, err);
}

static int
local_entry(struct local *l, const char *id, sb_storage_entry_fn fn, void *arg,
	struct sb_error *err)
{
	struct sb_storage_entry e = { .id = id };
	sb_autofree char *path = NULL;
	struct stat s;
	int r;

	if (fstatat(l->rootfd, id, &s, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(s.st_mode))
		return SB_E_NOTFOUND;
	r = mountpoint(l, id, &path, err);
	if (r < 0)
		return r;
	e.mountpoint = path;
	e.created_s = s.st_ctim.tv_sec;
	return fn(&e, arg, err);
}

/*
 * Calls `fn` with every name of the root that begins with `prefix`, or with none of our prefixes
 * when it is NULL.
 */
static int
each_name(struct local *l, const char *prefix,
	int (*fn)(struct local *, const char *, void *, struct sb_error *), void *arg,
	struct sb_error *err)
{
	int dup = openat(l->rootfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;
	int r = 0;

	if (!d) {
		if (dup >= 0)
			(void)close(dup);
		return sb_fail_errno(err, "read %s", l->root);
	}
	while (r >= 0 && (errno = 0, e = readdir(d)))
		if (prefix ? sb_str_starts(e->d_name, prefix) : e->d_name[0] != '.')
			r = fn(l, e->d_name, arg, err);
	return r;
}

struct local_listing {
	sb_storage_entry_fn fn;
	void *arg;
};

static int
list_name(struct local *l, const char *name, void *arg, struct sb_error *err)
{
	struct local_listing *li = arg;
	int r = local_entry(l, name, li->fn, li->arg, err);

	return r == SB_E_NOTFOUND ? 0 : r;
}

static int
local_list(struct sb_storage *st, const char *id, sb_storage_entry_fn fn, void *arg,
	struct sb_error *err)
{
	struct local_listing li = { fn, arg };
	int r;

	if (!id)
		return each_name(self(st), NULL, list_name, &li, err);
	r = local_entry(self(st), id, fn, arg, err);
	return r == SB_E_NOTFOUND ? sb_fail(err, r, "%s/%s is not there", self(st)->root, id) : r;
}

static int
sweep_name(struct local *l, const char *name, void *arg, struct sb_error *err)
{
	(void)arg;
	return sb_path_remove_tree(l->rootfd, name, err);
}

static int
local_sweep(struct sb_storage *st, struct sb_error *err)
{
	int r;

	/* Later ones belong to a destroy that is under way. */
	if (atomic_exchange(&self(st)->swept, true))
		return 0;
	r = each_name(self(st), DEAD, sweep_name, NULL, err);
	return r < 0 ? r : 0;
}

static int
local_used(struct sb_storage *st, const char *id, uint64_t *out, struct sb_error *err)
{
	sb_autoclose int dir =
		openat(self(st)->rootfd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		return sb_fail_errno(err, "open session %s", id);
	return sb_treecopy_used(dir, out, err);
}

static int
local_space(struct sb_storage *st, struct sb_storage_space *out, struct sb_error *err)
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
	out->state[0] = '\0';
	return 0;
}

static int
local_bases(struct sb_storage *st, struct sb_strlist *out, struct sb_error *err)
{
	struct local *l = self(st);
	int dup =
		l->basesfd >= 0 ? openat(l->basesfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;

	if (l->basesfd < 0)
		return 0;
	if (!d) {
		if (dup >= 0)
			(void)close(dup);
		return sb_fail_errno(err, "read %s", l->bases);
	}
	while ((e = readdir(d))) {
		struct stat s;

		if (sb_idcheck_base_dir(e->d_name, NULL) < 0 ||
			fstatat(l->basesfd, e->d_name, &s, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISDIR(s.st_mode))
			continue;
		sb_strlist_add(out, e->d_name);
	}
	return sb_strlist_check(out, err);
}

static void
local_close(struct sb_storage *st)
{
	struct local *l = self(st);

	if (l->rootfd >= 0)
		(void)close(l->rootfd);
	if (l->basesfd >= 0)
		(void)close(l->basesfd);
	if (l->claimfd >= 0)
		(void)close(l->claimfd);
	free(l->root);
	free(l->bases);
	free(l);
}

static const struct sb_storage_ops local_ops = {
	.version = 1,
	.name = "local-disk",
	.close = local_close,
	.create = local_create,
	.destroy = local_destroy,
	.mount = local_mount,
	.list = local_list,
	.sweep = local_sweep,
	.used = local_used,
	.space = local_space,
	.bases = local_bases,
};

static int
open_dirs(struct local *l, const struct sb_host_opts *o, struct sb_error *err)
{
	int r;

	if (!o->sessions_root_dir || o->sessions_root_dir[0] != '/')
		return sb_fail(err, SB_E_INVAL,
			"storage local-disk needs an absolute sessions root directory");
	if (o->default_quota)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"storage local-disk cannot enforce a default quota");
	r = sb_file_mkdirs(o->sessions_root_dir, 0700, err);
	if (r == 0)
		r = sb_rootcheck(o->sessions_root_dir, &o->log, err);
	if (r < 0)
		return r;
	l->root = strdup(o->sessions_root_dir);
	l->bases = o->bases_dir ? strdup(o->bases_dir) : NULL;
	if (!l->root || (o->bases_dir && !l->bases))
		return sb_fail(err, SB_E_NOMEM, "storage local-disk");
	r = l->claimfd = sb_claim_lock(l->root, err);
	if (r >= 0)
		r = l->rootfd = sb_path_open_root(l->root, err);
	if (r >= 0 && l->bases)
		r = l->basesfd = sb_path_open_root(l->bases, err);
	return r < 0 ? r : 0;
}

int
sb_storage_local_check(const struct sb_host_opts *o, struct sb_error *err)
{
	sb_autofree char *base = NULL;
	struct stat st;
	int r;

	if (!o->sessions_root_dir || o->sessions_root_dir[0] != '/')
		return sb_fail(err, SB_E_INVAL,
			"storage local-disk needs an absolute sessions root directory");
	if (o->bases_dir && stat(o->bases_dir, &st) < 0)
		return sb_fail_errno(err, "bases directory %s", o->bases_dir);
	if (!o->default_base || !*o->default_base)
		return 0;
	r = sb_idcheck_base_dir(o->default_base, err);
	if (r < 0)
		return sb_wrap(err, r, "default base");
	base = sb_str_printf("%s/%s", o->bases_dir ? o->bases_dir : "", o->default_base);
	if (!base)
		return sb_fail(err, SB_E_NOMEM, "default base");
	if (!o->bases_dir || lstat(base, &st) < 0 || !S_ISDIR(st.st_mode))
		return sb_fail(err, SB_E_BASE_NOT_FOUND, "default base %s: %s in %s",
			o->default_base, sb_code_text(SB_E_BASE_NOT_FOUND),
			o->bases_dir ? o->bases_dir : "no bases directory");
	return 0;
}

struct sb_storage *
sb_storage_local_open(const struct sb_host_opts *o, struct sb_error *err)
{
	struct local *l = calloc(1, sizeof *l);
	int r;

	if (!l) {
		(void)sb_fail(err, SB_E_NOMEM, "storage local-disk");
		return NULL;
	}
	l->st.ops = &local_ops;
	l->rootfd = l->basesfd = l->claimfd = -1;
	r = open_dirs(l, o, err);
	/* Nobody fills a directory before the host is open: these are left over. */
	if (r == 0)
		r = each_name(l, NEW, sweep_name, NULL, err);
	if (r < 0) {
		local_close(&l->st);
		return NULL;
	}
	return &l->st;
}
