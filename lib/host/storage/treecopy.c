/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/treecopy.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/str.h>

#define DEPTH_MAX 512
#define CHUNK (1u << 20)
#define SMALL 65536

/* A file with several links, and where its first copy is (from the root of the copy). */
struct link {
	struct link *next;
	dev_t dev;
	ino_t ino;
	char *path;
};
#define LINK_BUCKETS 1024

struct copy {
	const struct sb_host_call *call;
	int root; /* of the copy */
	dev_t dev;
	unsigned depth;
	struct link *links[LINK_BUCKETS];
};

static int
alive(const struct sb_host_call *call, struct sb_error *err)
{
	return sb_check_alive(call ? call->cancel : NULL, call ? call->deadline : SB_NEVER, "copy",
		err);
}

/* One run of data between holes. */
static int
copy_range(int in, int out, off_t off, off_t end, const struct sb_host_call *call,
	struct sb_error *err)
{
	sb_autofree char *buf = NULL;
	off_t to = off;

	while (off < end) {
		size_t want = end - off < (off_t)CHUNK ? (size_t)(end - off) : CHUNK;
		ssize_t n = -1;
		int r = alive(call, err);

		if (r < 0)
			return r;
		if (!buf)
			n = copy_file_range(in, &off, out, &to, want, 0);
		if (n == 0)
			return 0;
		if (n > 0)
			continue;
		if (!buf && errno != EXDEV && errno != EINVAL && errno != ENOSYS &&
			errno != EOPNOTSUPP && errno != EIO)
			return sb_fail_errno(err, "copy");
		if (!buf && !(buf = malloc(CHUNK)))
			return sb_fail(err, SB_E_NOMEM, "copy");
		n = pread(in, buf, want, off);
		if (n < 0)
			return sb_fail_errno(err, "read");
		if (n == 0)
			return 0;
		if (pwrite(out, buf, (size_t)n, to) != n)
			return sb_fail_errno(err, "write");
		off += n;
		to += n;
	}
	return 0;
}

static int
copy_data(int in, int out, off_t size, const struct sb_host_call *call, struct sb_error *err)
{
	off_t off = 0;

	if (ioctl(out, FICLONE, in) == 0)
		return 0;
	if (ftruncate(out, size) < 0)
		return sb_fail_errno(err, "set size");
	while (off < size) {
		off_t data = lseek(in, off, SEEK_DATA);
		off_t hole;
		int r;

		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0)
			data = off;
		hole = lseek(in, data, SEEK_HOLE);
		if (hole < 0)
			hole = size;
		r = copy_range(in, out, data, hole, call, err);
		if (r < 0)
			return r;
		off = hole > off ? hole : size;
	}
	return 0;
}

int
sb_treecopy_data(int in, int out, off_t size, struct sb_error *err)
{
	char buf[SMALL];
	ssize_t n;

	/* A clone writes dirty data out first, which costs more than copying what is small. */
	if (size > (off_t)sizeof buf)
		return copy_data(in, out, size, NULL, err);
	n = pread(in, buf, sizeof buf, 0);
	if (n < 0 || pwrite(out, buf, (size_t)n, 0) != n)
		return sb_fail_errno(err, "copy");
	return n == size ? 0 : copy_data(in, out, size, NULL, err);
}

/*
 * Owner before mode: a change of owner clears set-id bits. Not being allowed to change owners is no
 * error.
 */
static int
set_meta(int fd, const struct stat *st, struct sb_error *err)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (fchown(fd, st->st_uid, st->st_gid) < 0 && errno != EPERM)
		return sb_fail_errno(err, "set owner");
	if (fchmod(fd, st->st_mode & 07777) < 0)
		return sb_fail_errno(err, "set mode");
	if (futimens(fd, times) < 0)
		return sb_fail_errno(err, "set times");
	return 0;
}

static struct link **
link_bucket(struct copy *c, const struct stat *st)
{
	return &c->links[(size_t)(st->st_ino * 2654435761u) % LINK_BUCKETS];
}

/* 1: linked to its first copy; 0: it is the first, noted. */
static int
try_link(struct copy *c, const struct stat *st, int to, const char *name, const char *path,
	struct sb_error *err)
{
	struct link **b = link_bucket(c, st);
	struct link *l;

	for (l = *b; l; l = l->next)
		if (l->dev == st->st_dev && l->ino == st->st_ino) {
			if (linkat(c->root, l->path, to, name, 0) < 0)
				return sb_fail_errno(err, "link %s", name);
			return 1;
		}
	l = calloc(1, sizeof *l);
	if (l)
		l->path = strdup(path);
	if (!l || !l->path) {
		free(l);
		return sb_fail(err, SB_E_NOMEM, "hard links");
	}
	l->dev = st->st_dev;
	l->ino = st->st_ino;
	l->next = *b;
	*b = l;
	return 0;
}

static int
copy_file(struct copy *c, int from, int to, const char *name, const char *path,
	struct sb_error *err)
{
	sb_autoclose int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	sb_autoclose int out = -1;
	struct stat st;
	int r;

	if (in < 0 || fstat(in, &st) < 0)
		return sb_fail_errno(err, "open");
	if (st.st_nlink > 1) {
		r = try_link(c, &st, to, name, path, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return sb_fail_errno(err, "create");
	r = copy_data(in, out, st.st_size, c->call, err);
	return r < 0 ? r : set_meta(out, &st, err);
}

static int
copy_symlink(int from, int to, const char *name, const struct stat *st, struct sb_error *err)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	char target[4097];
	ssize_t n = readlinkat(from, name, target, sizeof target - 1);

	if (n < 0)
		return sb_fail_errno(err, "read link");
	target[n] = '\0';
	if (symlinkat(target, to, name) < 0)
		return sb_fail_errno(err, "make link");
	if (fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != EPERM)
		return sb_fail_errno(err, "set owner");
	(void)utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

static int
copy_fifo(int to, const char *name, const struct stat *st, struct sb_error *err)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (mkfifoat(to, name, st->st_mode & 0777) < 0)
		return sb_fail_errno(err, "make fifo");
	if (fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != EPERM)
		return sb_fail_errno(err, "set owner");
	if (fchmodat(to, name, st->st_mode & 07777, 0) < 0 ||
		utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "set mode and times");
	return 0;
}

static int copy_dir(struct copy *c, int from, int to, const char *path, struct sb_error *err);

static int
copy_subdir(struct copy *c, int from, int to, const char *name, const char *path,
	struct sb_error *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	sb_autoclose int in = openat(from, name, flags);
	sb_autoclose int out = -1;
	struct stat st;
	int r;

	if (in < 0 || fstat(in, &st) < 0)
		return sb_fail_errno(err, "open");
	if (mkdirat(to, name, 0700) < 0)
		return sb_fail_errno(err, "make directory");
	out = openat(to, name, flags);
	if (out < 0)
		return sb_fail_errno(err, "open copy");
	if (st.st_dev == c->dev) {
		if (++c->depth > DEPTH_MAX)
			return sb_fail(err, SB_E_LIMIT, "directories deeper than %d", DEPTH_MAX);
		r = copy_dir(c, in, out, path, err);
		c->depth--;
		if (r < 0)
			return r;
	}
	return set_meta(out, &st, err);
}

static int
copy_entry(struct copy *c, int from, int to, const char *name, const char *path,
	struct sb_error *err)
{
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "stat");
	switch (st.st_mode & S_IFMT) {
	case S_IFREG: return copy_file(c, from, to, name, path, err);
	case S_IFDIR: return copy_subdir(c, from, to, name, path, err);
	case S_IFLNK: return copy_symlink(from, to, name, &st, err);
	case S_IFIFO: return copy_fifo(to, name, &st, err);
	default: return 0;
	}
}

static int
copy_dir(struct copy *c, int from, int to, const char *path, struct sb_error *err)
{
	int dup = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;

	if (!d) {
		if (dup >= 0)
			(void)close(dup);
		return sb_fail_errno(err, "read directory");
	}
	while ((errno = 0, e = readdir(d))) {
		sb_autofree char *sub = NULL;
		int r;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		sub = *path ? sb_str_printf("%s/%s", path, e->d_name) : strdup(e->d_name);
		if (!sub)
			return sb_fail(err, SB_E_NOMEM, "path");
		r = alive(c->call, err);
		if (r == 0)
			r = copy_entry(c, from, to, e->d_name, sub, err);
		if (r < 0)
			return c->depth == 0 ? sb_wrap(err, r, "copy %s", e->d_name) : r;
	}
	return errno ? sb_fail_errno(err, "read directory") : 0;
}

int
sb_treecopy(int from, int to, const struct sb_host_call *call, struct sb_error *err)
{
	sb_autofree struct copy *c = calloc(1, sizeof *c);
	struct stat st;
	int r;

	if (!c)
		return sb_fail(err, SB_E_NOMEM, "copy");
	if (fstat(from, &st) < 0)
		return sb_fail_errno(err, "stat");
	c->call = call;
	c->root = to;
	c->dev = st.st_dev;
	r = copy_dir(c, from, to, "", err);
	for (size_t i = 0; i < LINK_BUCKETS; i++)
		while (c->links[i]) {
			struct link *l = c->links[i];

			c->links[i] = l->next;
			free(l->path);
			free(l);
		}
	return r < 0 ? r : set_meta(to, &st, err);
}

static int
used(int fd, dev_t dev, unsigned depth, uint64_t *sum, struct sb_error *err)
{
	int dup = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;

	if (!d) {
		if (dup >= 0)
			(void)close(dup);
		return sb_fail_errno(err, "read directory");
	}
	while ((e = readdir(d))) {
		sb_autoclose int sub = -1;
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
			fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != dev)
			continue;
		*sum += (uint64_t)st.st_blocks * 512;
		if (!S_ISDIR(st.st_mode) || depth >= DEPTH_MAX)
			continue;
		/* What goes away meanwhile is not counted. */
		sub = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0 && used(sub, dev, depth + 1, sum, err) < 0)
			return err ? err->code : SB_E_SYS;
	}
	return 0;
}

int
sb_treecopy_used(int dir, uint64_t *out, struct sb_error *err)
{
	struct stat st;
	uint64_t sum;
	int r;

	if (fstat(dir, &st) < 0)
		return sb_fail_errno(err, "stat");
	sum = (uint64_t)st.st_blocks * 512;
	r = used(dir, st.st_dev, 0, &sum, err);
	if (r == 0)
		*out = sum;
	return r;
}
