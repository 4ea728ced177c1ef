/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/btrfs-layer.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/path.h>
#include <base/str.h>
#include <base/strlist.h>
#include <host/storage/overlay-layer.h>
#include <host/storage/treecopy.h>

#define DEPTH_MAX 2048
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct link {
	ino_t ino;
	char *path;
};

/* One build or apply. */
struct job {
	const struct sb_host_call *call;
	int root; /* of what is made */
	int old;  /* root of the state before */
	struct link *links;
	size_t n_links, cap_links;
	unsigned depth;
};

/* A directory that is being made: those above it, for its path, and whether it is there yet. */
struct place {
	struct place *up;
	const char *name;
	int fd;   /* -1: not made */
	int from; /* whose attributes it gets */
	bool opaque;
};

static void
job_free(struct job *j)
{
	for (size_t i = 0; i < j->n_links; i++)
		free(j->links[i].path);
	free(j->links);
}

static int
alive(const struct job *j, struct sb_error *err)
{
	return sb_check_alive(j->call ? j->call->cancel : NULL,
		j->call ? j->call->deadline : SB_NEVER, "stream", err);
}

static char *
path_of(const struct place *p, const char *name)
{
	char *path = strdup(name);

	for (; p->up && path; p = p->up) {
		char *longer = sb_str_printf("%s/%s", p->name, path);

		free(path);
		path = longer;
	}
	return path;
}

/* 1: made as one more name of a file that was copied before. */
static int
try_link(struct job *j, struct place *p, const char *name, ino_t ino, struct sb_error *err)
{
	for (size_t i = 0; i < j->n_links; i++)
		if (j->links[i].ino == ino)
			return linkat(j->root, j->links[i].path, p->fd, name, 0) < 0 ?
				sb_fail_errno(err, "link %s", name) :
				1;
	if (j->n_links == j->cap_links) {
		size_t cap = j->cap_links ? j->cap_links * 2 : 16;
		struct link *v = reallocarray(j->links, cap, sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "hard links");
		j->links = v;
		j->cap_links = cap;
	}
	j->links[j->n_links] = (struct link){ ino, path_of(p, name) };
	if (!j->links[j->n_links].path)
		return sb_fail(err, SB_E_NOMEM, "hard links");
	j->n_links++;
	return 0;
}

static int
copy_file(struct job *j, int dir, const char *name, struct place *p, struct sb_error *err)
{
	sb_autoclose int in = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	sb_autoclose int out = -1;
	struct stat st;
	int r = 0;

	if (in < 0 || fstat(in, &st) < 0)
		return sb_fail_errno(err, "open %s", name);
	if (st.st_nlink > 1)
		r = try_link(j, p, name, st.st_ino, err);
	if (r != 0)
		return r < 0 ? r : 0;
	out = openat(p->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return sb_fail_errno(err, "make %s", name);
	r = st.st_size ? sb_treecopy_data(in, out, st.st_size, err) : 0;
	return r < 0 ? r : sb_overlay_layer_copy_meta(in, out, &st, false, err);
}

static int
copy_special(int dir, const char *name, const struct stat *st, int to, struct sb_error *err)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	char target[4097];
	ssize_t n;

	if (S_ISLNK(st->st_mode)) {
		n = readlinkat(dir, name, target, sizeof target - 1);
		if (n < 0)
			return sb_fail_errno(err, "read link %s", name);
		target[n] = '\0';
		if (symlinkat(target, to, name) < 0)
			return sb_fail_errno(err, "make link %s", name);
	} else if (mknodat(to, name, st->st_mode, st->st_rdev) < 0) {
		return sb_fail_errno(err, "make %s", name);
	}
	if (fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
		utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "set attributes of %s", name);
	return 0;
}

static int
copy_leaf(struct job *j, int dir, const char *name, const struct stat *st, struct place *p,
	struct sb_error *err)
{
	return S_ISREG(st->st_mode) ? copy_file(j, dir, name, p, err) :
				      copy_special(dir, name, st, p->fd, err);
}

/* The names of a directory, sorted by nobody. */
static int
names_of(int dir, struct sb_strlist *out, struct sb_error *err)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *e;

	if (!d) {
		if (copy >= 0)
			(void)close(copy);
		return sb_fail_errno(err, "read a directory");
	}
	while ((errno = 0, e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			sb_strlist_add(out, e->d_name);
	return errno ? sb_fail_errno(err, "read a directory") : sb_strlist_check(out, err);
}

static int
need_place(struct place *p, struct sb_error *err)
{
	int r;

	if (p->fd >= 0)
		return 0;
	r = need_place(p->up, err);
	if (r < 0)
		return r;
	if (mkdirat(p->up->fd, p->name, 0700) < 0)
		return sb_fail_errno(err, "make %s", p->name);
	p->fd = openat(p->up->fd, p->name, DIR_FLAGS);
	return p->fd < 0 ? sb_fail_errno(err, "open %s", p->name) : 0;
}

static int
finish_place(struct place *p, struct sb_error *err)
{
	struct stat st;

	if (p->fd < 0)
		return 0;
	if (p->opaque && fsetxattr(p->fd, SB_OVERLAY_OPAQUE, "y", 1, 0) < 0)
		return sb_fail_errno(err, "mark %s", p->name);
	if (fstat(p->from, &st) < 0)
		return sb_fail_errno(err, "stat %s", p->name);
	return sb_overlay_layer_copy_meta(p->from, p->fd, &st, false, err);
}

static bool
same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_mode == b->st_mode && a->st_size == b->st_size &&
		a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int build_dir(struct job *j, int old, int now, struct place *p, struct sb_error *err);

/* A directory that is there now; `was` is what had its name. */
static int
build_subdir(struct job *j, int old, int now, const char *name, const struct stat *st,
	const struct stat *was, struct place *up, struct sb_error *err)
{
	bool goes_on = was && S_ISDIR(was->st_mode) && was->st_ino == st->st_ino;
	sb_autoclose int before = goes_on ? openat(old, name, DIR_FLAGS) : -1;
	sb_autoclose int dir = openat(now, name, DIR_FLAGS);
	struct place p = { .up = up,
		.name = name,
		.fd = -1,
		.from = dir,
		.opaque = was && !goes_on };
	int r = 0;

	if (dir < 0 || (goes_on && before < 0))
		return sb_fail_errno(err, "open %s", name);
	if (++j->depth > DEPTH_MAX)
		return sb_fail(err, SB_E_LIMIT, "directories deeper than %d", DEPTH_MAX);
	if (!goes_on || !same(st, was))
		r = need_place(&p, err);
	if (r == 0)
		r = build_dir(j, before, dir, &p, err);
	if (r == 0)
		r = finish_place(&p, err);
	if (p.fd >= 0)
		(void)close(p.fd);
	j->depth--;
	return r;
}

static int
build_name(struct job *j, int old, int now, const char *name, struct place *p, struct sb_error *err)
{
	struct stat st, was;
	bool had = old >= 0 && fstatat(old, name, &was, AT_SYMLINK_NOFOLLOW) == 0;
	int r;

	if (fstatat(now, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "stat %s", name);
	if (S_ISDIR(st.st_mode))
		return build_subdir(j, old, now, name, &st, had ? &was : NULL, p, err);
	if (had && same(&st, &was))
		return 0;
	r = need_place(p, err);
	return r < 0 ? r : copy_leaf(j, now, name, &st, p, err);
}

static int
build_dir(struct job *j, int old, int now, struct place *p, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist is = { 0 }, were = { 0 };
	int r = names_of(now, &is, err);

	if (r == 0 && old >= 0)
		r = names_of(old, &were, err);
	for (size_t i = 0; i < is.n && r == 0; i++) {
		r = alive(j, err);
		if (r == 0)
			r = build_name(j, old, now, is.v[i], p, err);
	}
	for (size_t i = 0; i < were.n && r == 0; i++) {
		struct stat st;

		if (fstatat(now, were.v[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		r = need_place(p, err);
		if (r == 0 && mknodat(p->fd, were.v[i], S_IFCHR, makedev(0, 0)) < 0)
			r = sb_fail_errno(err, "whiteout of %s", were.v[i]);
	}
	return r;
}

int
sb_btrfs_layer_build(int old, int now, int to, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct job j = { .call = call, .root = to, .old = old };
	struct place p = { .name = "", .fd = to, .from = now };
	int r = build_dir(&j, old, now, &p, err);

	job_free(&j);
	return r < 0 ? r : finish_place(&p, err);
}

/* Where the directory was in the state before, by its mark; -1: nowhere. */
static int
open_before(struct job *j, int dir, int old, const char *name, bool *moved, struct sb_error *err)
{
	sb_autofree char *opaque = NULL;
	sb_autofree char *redirect = NULL;
	bool bad = false;

	opaque = sb_overlay_layer_mark(dir, SB_OVERLAY_OPAQUE, &bad);
	if (!bad)
		redirect = sb_overlay_layer_mark(dir, SB_OVERLAY_REDIRECT, &bad);
	*moved = redirect != NULL || (opaque && opaque[0] == 'y');
	if (bad)
		return sb_fail_errno(err, "marks of %s", name);
	if (opaque && opaque[0] == 'y')
		return -1;
	if (redirect && redirect[0] == '/')
		return sb_path_open(j->old, redirect + 1, O_RDONLY | O_DIRECTORY, 0, NULL);
	return old < 0 ? -1 : openat(old, redirect ? redirect : name, DIR_FLAGS);
}

static int apply_dir(struct job *j, int from, int old, struct place *p, struct sb_error *err);

static int
apply_subdir(struct job *j, int from, int old, const char *name, struct place *up,
	struct sb_error *err)
{
	sb_autoclose int dir = openat(from, name, DIR_FLAGS);
	sb_autoclose int before = -1;
	struct place p = { .up = up, .name = name, .fd = -1, .from = dir };
	bool moved = false;
	struct stat st;
	int r = 0;

	if (dir < 0)
		return sb_fail_errno(err, "open %s", name);
	if (++j->depth > DEPTH_MAX)
		return sb_fail(err, SB_E_LIMIT, "directories deeper than %d", DEPTH_MAX);
	before = open_before(j, dir, old, name, &moved, err);
	if (before < -1)
		return before;
	/* Another directory than the one that had the name, or the first of it. */
	if (moved || fstatat(up->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode)) {
		r = sb_path_remove_tree(up->fd, name, err);
		if (r == 0)
			r = need_place(&p, err);
		if (r == 0 && before >= 0)
			r = sb_treecopy(before, p.fd, j->call, err);
	} else {
		p.fd = openat(up->fd, name, DIR_FLAGS);
		r = p.fd < 0 ? sb_fail_errno(err, "open %s", name) : 0;
	}
	if (r == 0)
		r = apply_dir(j, dir, before, &p, err);
	if (r == 0)
		r = finish_place(&p, err);
	if (p.fd >= 0)
		(void)close(p.fd);
	j->depth--;
	return r;
}

static int
apply_name(struct job *j, int from, int old, const char *name, struct place *p,
	struct sb_error *err)
{
	struct stat st;
	int r;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "stat %s", name);
	if (S_ISDIR(st.st_mode))
		return apply_subdir(j, from, old, name, p, err);
	r = sb_path_remove_tree(p->fd, name, err);
	if (r < 0 || sb_overlay_layer_is_whiteout(&st))
		return r;
	return copy_leaf(j, from, name, &st, p, err);
}

static int
apply_dir(struct job *j, int from, int old, struct place *p, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist names = { 0 };
	int r = names_of(from, &names, err);

	for (size_t i = 0; i < names.n && r == 0; i++) {
		r = alive(j, err);
		if (r == 0)
			r = apply_name(j, from, old, names.v[i], p, err);
	}
	return r;
}

int
sb_btrfs_layer_apply(int from, int old, int tree, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct job j = { .call = call, .root = tree, .old = old };
	struct place p = { .name = "", .fd = tree, .from = from };
	int r = apply_dir(&j, from, old, &p, err);

	job_free(&j);
	return r < 0 ? r : finish_place(&p, err);
}
