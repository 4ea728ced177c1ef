/* SPDX-License-Identifier: MIT */
/* Removes a whole tree by descriptor, without leaving it (sb_path_remove_tree of base/path.h). */
#include "config.h"

#include <base/path.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/escape.h>

/*
 * So many directories on the way down stay open; those above are found again through
 * "..".
 */
#define OPEN_LEVELS 48
/* A directory that others fill while it is emptied is emptied again so many times. */
#define EMPTY_TRIES 16

/*
 * Which mount and which directory: what must not change between going down and coming
 * back.
 */
struct inode {
	uint64_t dev;
	uint64_t ino;
	uint64_t mount; /* 0 where the kernel does not tell */
};

struct level {
	DIR *dir; /* NULL: closed to save descriptors */
	struct inode at;
	int tries;
	char name[256];
};

struct removal {
	struct level *v;
	size_t n;
	size_t cap;
	int top; /* the caller's directory; borrowed */
	struct inode top_at;
};

static int
fail_name(struct sb_error *err, const char *what, const char *name)
{
	struct sb_escape_name s;

	return sb_fail_errno(err, "%s %s", what, sb_escape_name(name, strlen(name), &s));
}

static int
get_inode(int fd, struct inode *out)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MODE | STATX_MNT_ID, &stx) < 0)
		return -1;
	*out = (struct inode){
		.dev = makedev(stx.stx_dev_major, stx.stx_dev_minor),
		.ino = stx.stx_ino,
		.mount = stx.stx_mask & STATX_MNT_ID ? stx.stx_mnt_id : 0,
	};
	return 0;
}

/*
 * Gives the owner all rights to the directory `name`, which could not be opened. Goes
 * through a descriptor's name in /proc because no chmod by name refuses symlinks on every
 * kernel.
 */
static int
make_accessible(int dirfd, const char *name)
{
	sb_autoclose int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char proc[64];

	if (fd < 0)
		return -1;
	(void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
	return chmod(proc, 0700);
}

static int
open_dir(int dirfd, const char *name)
{
	static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dirfd, name, flags);
	struct stat st;

	if (fd < 0 && errno == EACCES && !make_accessible(dirfd, name))
		fd = openat(dirfd, name, flags);
	/* When this fails, so will the first removal inside, with a better message. */
	if (fd >= 0 && !fstat(fd, &st) && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, (st.st_mode & 0777) | 0700);
	return fd;
}

/* Makes room for one more level and closes the directory that falls out of the window. */
static int
prepare_level(struct removal *rm, struct sb_error *err)
{
	if (rm->n == rm->cap) {
		size_t cap = rm->cap ? rm->cap * 2 : 16;
		struct level *v = reallocarray(rm->v, cap, sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "remove %zu levels deep: out of memory",
				cap);
		rm->v = v;
		rm->cap = cap;
	}
	if (rm->n >= OPEN_LEVELS) {
		struct level *far = &rm->v[rm->n - OPEN_LEVELS];

		if (far->dir)
			(void)closedir(far->dir);
		far->dir = NULL;
	}
	return 0;
}

/* Closes every directory on the way but the last. False when none was open. */
static bool
close_above(struct removal *rm)
{
	bool any = false;

	for (size_t i = 0; i + 1 < rm->n; i++) {
		if (!rm->v[i].dir)
			continue;
		(void)closedir(rm->v[i].dir);
		rm->v[i].dir = NULL;
		any = true;
	}
	return any;
}

static const struct inode *
last_place(const struct removal *rm)
{
	return rm->n ? &rm->v[rm->n - 1].at : &rm->top_at;
}

/* Goes down into the directory `name` of `dirfd`; nothing to do when it is gone. */
static int
push(struct removal *rm, int dirfd, const char *name, struct sb_error *err)
{
	sb_autoclose int fd = -1;
	struct level *l;
	struct inode at;
	struct sb_escape_name s;
	int r = prepare_level(rm, err);

	if (r < 0)
		return r;
	do
		fd = open_dir(dirfd, name);
	while (fd < 0 && (errno == EMFILE || errno == ENFILE) && close_above(rm));
	if (fd < 0 && errno == ENOENT)
		return 0;
	/* Another process put something else in its place. */
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP) && !unlinkat(dirfd, name, 0))
		return 0;
	if (fd < 0 || get_inode(fd, &at) < 0)
		return fail_name(err, "remove", name);
	if (at.dev != last_place(rm)->dev || at.mount != last_place(rm)->mount)
		return sb_fail(err, SB_E_STATE,
			"remove %s: something is mounted there, unmount it first",
			sb_escape_name(name, strlen(name), &s));
	l = &rm->v[rm->n];
	*l = (struct level){ .dir = fdopendir(fd), .at = at };
	if (!l->dir)
		return fail_name(err, "remove", name);
	(void)sb_steal_fd(&fd);
	(void)snprintf(l->name, sizeof l->name, "%s", name);
	rm->n++;
	return 0;
}

/*
 * The descriptor of the directory above the last level, opened again through ".." if need
 * be.
 */
static int
reopen_above(struct removal *rm, int fd, struct sb_error *err)
{
	struct level *up;
	struct inode at;
	sb_autoclose int again = -1;

	if (rm->n < 2)
		return rm->top;
	up = &rm->v[rm->n - 2];
	if (up->dir)
		return dirfd(up->dir);
	again = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (again < 0 || get_inode(again, &at) < 0)
		return fail_name(err, "go back from", rm->v[rm->n - 1].name);
	if (at.dev != up->at.dev || at.ino != up->at.ino)
		return sb_fail(err, SB_E_CHANGED, "remove: a directory was moved away meanwhile");
	up->dir = fdopendir(again);
	if (!up->dir)
		return fail_name(err, "go back from", rm->v[rm->n - 1].name);
	return sb_steal_fd(&again);
}

/* The last level has been read to its end: removes it and goes up. */
static int
pop(struct removal *rm, struct sb_error *err)
{
	struct level *l = &rm->v[rm->n - 1];
	int up = reopen_above(rm, dirfd(l->dir), err);

	if (up < 0)
		return up;
	/* ENOTDIR: another process put something else in its place. */
	if (!unlinkat(up, l->name, AT_REMOVEDIR) || errno == ENOENT ||
		(errno == ENOTDIR && !unlinkat(up, l->name, 0))) {
		(void)closedir(l->dir);
		rm->n--;
		return 0;
	}
	/*
	 * Removing while reading may skip names on some file systems, and others may add
	 * some.
	 */
	if ((errno == ENOTEMPTY || errno == EEXIST || errno == EISDIR) &&
		++l->tries < EMPTY_TRIES) {
		rewinddir(l->dir);
		return 0;
	}
	return fail_name(err, "remove", l->name);
}

/* Removes one entry, or goes down into it. */
static int
remove_entry(struct removal *rm, int dirfd, const char *name, bool known_dir, struct sb_error *err)
{
	struct stat st;

	if (!known_dir && (!unlinkat(dirfd, name, 0) || errno == ENOENT))
		return 0;
	if (!known_dir && errno != EISDIR && errno != EPERM)
		return fail_name(err, "remove", name);
	if (!known_dir && errno == EPERM &&
		(fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))) {
		errno = EPERM;
		return fail_name(err, "remove", name);
	}
	return push(rm, dirfd, name, err);
}

static int
remove_all(struct removal *rm, struct sb_error *err)
{
	int r = 0;

	while (rm->n && r >= 0) {
		DIR *d = rm->v[rm->n - 1].dir;
		struct dirent *e;

		errno = 0;
		e = readdir(d);
		if (!e && errno)
			return fail_name(err, "read directory", rm->v[rm->n - 1].name);
		if (!e)
			r = pop(rm, err);
		else if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			r = remove_entry(rm, dirfd(d), e->d_name, e->d_type == DT_DIR, err);
	}
	return r;
}

int
sb_path_remove_tree(int dirfd, const char *name, struct sb_error *err)
{
	struct removal rm = { .top = dirfd };
	int r = sb_path_check(name, strlen(name), err);
	struct sb_escape_name s;

	if (r < 0)
		return r;
	if (!*name || strchr(name, '/'))
		return sb_fail(err, SB_E_ESCAPE, "remove: \"%s\" is not a single name",
			sb_escape_name(name, strlen(name), &s));
	if (get_inode(dirfd, &rm.top_at) < 0)
		return sb_fail_errno(err, "remove: directory");
	r = remove_entry(&rm, dirfd, name, false, err);
	if (r >= 0)
		r = remove_all(&rm, err);
	for (size_t i = 0; i < rm.n; i++)
		if (rm.v[i].dir)
			(void)closedir(rm.v[i].dir);
	free(rm.v);
	return r < 0 ? r : 0;
}
