/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/changes.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/cleanup.h>

#define DEPTH_MAX 512
#define PATH_BYTES_MAX 65536
#define COMPARE_CHUNK 65536

int
sb_changes_add(struct sb_changes *c, enum sb_host_change_kind kind, char type, const char *path,
	const char *from, uint64_t ino, struct sb_error *err)
{
	struct sb_host_change ch = { .kind = kind, .type = type };

	if (c->n >= c->max) {
		c->more = true;
		return 0;
	}
	if (c->n == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 64;
		struct sb_host_change *v = reallocarray(c->v, cap, sizeof *v);
		uint64_t *i = v ? reallocarray(c->ino, cap, sizeof *i) : NULL;

		if (v)
			c->v = v;
		if (i)
			c->ino = i;
		if (!i)
			return sb_fail(err, SB_E_NOMEM, "list of changes");
		c->cap = cap;
	}
	ch.path = strdup(path);
	ch.from = from ? strdup(from) : NULL;
	if (!ch.path || (from && !ch.from)) {
		free(ch.path);
		free(ch.from);
		return sb_fail(err, SB_E_NOMEM, "list of changes");
	}
	c->ino[c->n] = ino;
	c->v[c->n++] = ch;
	return 0;
}

struct keyed {
	struct sb_host_change ch;
	uint64_t ino;
};

static int
by_inode(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return (int)x->ch.kind - (int)y->ch.kind;
}

static int
by_path(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	return strcmp(x->ch.path, y->ch.path);
}

/* Neighbours in inode order: ADDED sorts before REMOVED. Exactly one of each is a rename. */
static size_t
pair_renames(struct keyed *k, size_t n)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++) {
		bool pair = i + 1 < n && k[i].ino != 0 && k[i].ino == k[i + 1].ino &&
			(i + 2 == n || k[i + 2].ino != k[i].ino) &&
			(i == 0 || k[i - 1].ino != k[i].ino) && k[i].ch.kind == SB_HOST_ADDED &&
			k[i + 1].ch.kind == SB_HOST_REMOVED && k[i].ch.type == k[i + 1].ch.type;

		k[out] = k[i];
		if (pair) {
			k[out].ch.kind = SB_HOST_RENAMED;
			k[out].ch.from = k[i + 1].ch.path;
			k[out].ino = 0;
			i++;
		}
		out++;
	}
	return out;
}

void
sb_changes_finish(struct sb_changes *c)
{
	sb_autofree struct keyed *k = calloc(c->n ? c->n : 1, sizeof *k);

	/* Without memory for it the list stays unsorted and unpaired: true, but longer. */
	if (!k)
		return;
	for (size_t i = 0; i < c->n; i++)
		k[i] = (struct keyed){ c->v[i], c->ino[i] };
	qsort(k, c->n, sizeof *k, by_inode);
	if (!c->more)
		c->n = pair_renames(k, c->n);
	qsort(k, c->n, sizeof *k, by_path);
	for (size_t i = 0; i < c->n; i++)
		c->v[i] = k[i].ch;
}

void
sb_changes_forget(struct sb_changes *c, const char *path)
{
	size_t len = strlen(path), out = 0;

	for (size_t i = 0; i < c->n; i++) {
		const char *at = c->v[i].path;

		if (c->v[i].kind == SB_HOST_REMOVED && strncmp(at, path, len) == 0 &&
			(at[len] == '\0' || at[len] == '/')) {
			free(c->v[i].path);
			continue;
		}
		c->ino[out] = c->ino[i];
		c->v[out++] = c->v[i];
	}
	c->n = out;
}

void
sb_changes_free(struct sb_changes *c)
{
	sb_host_changes_free(c->v, c->n);
	free(c->ino);
	*c = (struct sb_changes){ 0 };
}

void
sb_host_changes_free(struct sb_host_change *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].path);
		free(v[i].from);
		free(v[i].old_data);
		free(v[i].new_data);
	}
	free(v);
}

struct compare {
	struct sb_changes *out;
	const struct sb_host_call *call;
	struct sb_buf path; /* of the directory at hand, "" or "a/b/" */
	dev_t dev[2];
	unsigned depth;
};

struct dir_names {
	char **v;
	size_t n, cap;
};

static void
names_free(struct dir_names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
}

static int
cmp_str(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The sorted names of a directory; the descriptor stays the caller's. */
static int
names_read(int fd, struct dir_names *l, struct sb_error *err)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *e;

	if (!d) {
		if (copy >= 0)
			(void)close(copy);
		return sb_fail_errno(err, "read directory");
	}
	while ((errno = 0, e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (l->n == l->cap) {
			size_t cap = l->cap ? l->cap * 2 : 32;
			char **v = reallocarray(l->v, cap, sizeof *v);

			if (!v)
				return sb_fail(err, SB_E_NOMEM, "directory listing");
			l->v = v;
			l->cap = cap;
		}
		l->v[l->n] = strdup(e->d_name);
		if (!l->v[l->n])
			return sb_fail(err, SB_E_NOMEM, "directory listing");
		l->n++;
	}
	if (errno)
		return sb_fail_errno(err, "read directory");
	if (l->n)
		qsort(l->v, l->n, sizeof l->v[0], cmp_str);
	return 0;
}

static char
type_of(const struct stat *st)
{
	return S_ISREG(st->st_mode)  ? 'f' :
		S_ISDIR(st->st_mode) ? 'd' :
		S_ISLNK(st->st_mode) ? 'l' :
				       'o';
}

/* Back to the first `len` bytes. */
static void
cut(struct sb_buf *path, size_t len)
{
	if (path->cap)
		path->data[len] = '\0';
	path->len = len;
}

/*
 * What tells that two names are the same file: the inode, which may have been another file's
 * before, and when it was born where that is known.
 */
static uint64_t
identity(int dir, const char *name, const struct stat *st)
{
	struct statx x;

	if (statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &x) < 0 ||
		!(x.stx_mask & STATX_BTIME))
		return st->st_ino;
	return (st->st_ino * 0x9e3779b97f4a7c15ull) ^
		((uint64_t)x.stx_btime.tv_sec * 1000000000 + x.stx_btime.tv_nsec);
}

static int
note(struct compare *c, enum sb_host_change_kind kind, int dir, const char *name,
	const struct stat *st, struct sb_error *err)
{
	size_t len = c->path.len;
	int r;

	sb_buf_add_str(&c->path, name);
	r = sb_buf_check(&c->path, "path", err);
	if (r == 0)
		r = sb_changes_add(c->out, kind, type_of(st), (char *)c->path.data, NULL,
			kind == SB_HOST_MODIFIED ? 0 : identity(dir, name, st), err);
	cut(&c->path, len);
	return r;
}

/* Byte by byte; true also when it cannot be read, so that the doubt is reported. */
static bool
content_differs(int a_dir, int b_dir, const char *name)
{
	sb_autoclose int a = openat(a_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	sb_autoclose int b = openat(b_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	sb_autofree char *buf = malloc(2 * (size_t)COMPARE_CHUNK);
	off_t off = 0;

	if (a < 0 || b < 0 || !buf)
		return true;
	for (;;) {
		ssize_t n = pread(a, buf, COMPARE_CHUNK, off);
		ssize_t m = pread(b, buf + COMPARE_CHUNK, COMPARE_CHUNK, off);

		if (n != m || n < 0 || memcmp(buf, buf + COMPARE_CHUNK, (size_t)n) != 0)
			return true;
		if (n == 0)
			return false;
		off += n;
	}
}

static bool
link_differs(int a_dir, int b_dir, const char *name)
{
	char a[4096], b[4096];
	ssize_t n = readlinkat(a_dir, name, a, sizeof a);
	ssize_t m = readlinkat(b_dir, name, b, sizeof b);

	return n < 0 || n != m || memcmp(a, b, (size_t)n) != 0;
}

static bool
same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool
entry_differs(int old_dir, int new_dir, const char *name, const struct stat *a,
	const struct stat *b)
{
	if (a->st_mode != b->st_mode || a->st_uid != b->st_uid || a->st_gid != b->st_gid)
		return true;
	if (a->st_ino == b->st_ino && a->st_size == b->st_size && same_time(a->st_ctim, b->st_ctim))
		return false;
	if (S_ISREG(a->st_mode))
		return a->st_size != b->st_size || content_differs(old_dir, new_dir, name);
	if (S_ISLNK(a->st_mode))
		return link_differs(old_dir, new_dir, name);
	return a->st_rdev != b->st_rdev;
}

static int compare_dirs(struct compare *c, int old_dir, int new_dir, struct sb_error *err);

/* Goes down into `name` of either side or both (-1: that side has none). */
static int
descend(struct compare *c, int old_dir, int new_dir, const char *name, struct sb_error *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	sb_autoclose int a = old_dir >= 0 ? openat(old_dir, name, flags) : -1;
	sb_autoclose int b = new_dir >= 0 ? openat(new_dir, name, flags) : -1;
	size_t len = c->path.len;
	int r;

	/* It may go away or turn into something else under our eyes: then it is not there. */
	if (a < 0 && b < 0)
		return 0;
	if (++c->depth > DEPTH_MAX)
		return sb_fail(err, SB_E_LIMIT, "directories deeper than %d", DEPTH_MAX);
	sb_buf_add_str(&c->path, name);
	sb_buf_add_char(&c->path, '/');
	r = sb_buf_check(&c->path, "path", err);
	if (r == 0)
		r = compare_dirs(c, a, b, err);
	cut(&c->path, len);
	c->depth--;
	return r;
}

static int
one_sided(struct compare *c, int dir, int side, const char *name, struct sb_error *err)
{
	struct stat st;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ?
			0 :
			sb_fail_errno(err, "stat %s%s", (char *)c->path.data, name);
	r = note(c, side == 0 ? SB_HOST_REMOVED : SB_HOST_ADDED, dir, name, &st, err);
	if (r == 0 && S_ISDIR(st.st_mode) && st.st_dev == c->dev[side])
		r = descend(c, side == 0 ? dir : -1, side == 0 ? -1 : dir, name, err);
	return r;
}

static int
both_sides(struct compare *c, int old_dir, int new_dir, const char *name, struct sb_error *err)
{
	struct stat a, b;

	if (fstatat(old_dir, name, &a, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "stat %s%s", (char *)c->path.data, name);
	if (fstatat(new_dir, name, &b, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ?
			one_sided(c, old_dir, 0, name, err) :
			sb_fail_errno(err, "stat %s%s", (char *)c->path.data, name);
	if ((a.st_mode & S_IFMT) != (b.st_mode & S_IFMT)) {
		int r = one_sided(c, old_dir, 0, name, err);

		return r < 0 ? r : one_sided(c, new_dir, 1, name, err);
	}
	if (S_ISDIR(a.st_mode)) {
		if (a.st_dev != c->dev[0] || b.st_dev != c->dev[1])
			return 0;
		return descend(c, old_dir, new_dir, name, err);
	}
	return entry_differs(old_dir, new_dir, name, &a, &b) ?
		note(c, SB_HOST_MODIFIED, new_dir, name, &b, err) :
		0;
}

static int
merge(struct compare *c, int old_dir, int new_dir, const struct dir_names *a,
	const struct dir_names *b, struct sb_error *err)
{
	size_t i = 0, j = 0;
	int r = 0;

	while (r == 0 && !c->out->more && (i < a->n || j < b->n)) {
		int cmp = i == a->n ? 1 : j == b->n ? -1 : strcmp(a->v[i], b->v[j]);

		r = sb_check_alive(c->call ? c->call->cancel : NULL,
			c->call ? c->call->deadline : SB_NEVER, "diff", err);
		if (r < 0)
			break;
		if (cmp < 0)
			r = one_sided(c, old_dir, 0, a->v[i++], err);
		else if (cmp > 0)
			r = one_sided(c, new_dir, 1, b->v[j++], err);
		else {
			r = both_sides(c, old_dir, new_dir, a->v[i++], err);
			j++;
		}
	}
	return r;
}

static int
compare_dirs(struct compare *c, int old_dir, int new_dir, struct sb_error *err)
{
	struct dir_names a = { 0 }, b = { 0 };
	int r = 0;

	if (old_dir >= 0)
		r = names_read(old_dir, &a, err);
	if (r == 0 && new_dir >= 0)
		r = names_read(new_dir, &b, err);
	if (r == 0)
		r = merge(c, old_dir, new_dir, &a, &b, err);
	names_free(&a);
	names_free(&b);
	return r;
}

int
sb_changes_compare(int old_dir, int new_dir, const struct sb_host_call *call,
	struct sb_changes *out, struct sb_error *err)
{
	struct compare c = { .out = out, .call = call };
	struct stat a, b;
	int r;

	if (fstat(old_dir, &a) < 0 || fstat(new_dir, &b) < 0)
		return sb_fail_errno(err, "stat the roots");
	c.dev[0] = a.st_dev;
	c.dev[1] = b.st_dev;
	sb_buf_init(&c.path, PATH_BYTES_MAX);
	r = compare_dirs(&c, old_dir, new_dir, err);
	sb_buf_free(&c.path);
	return r;
}

int
sb_changes_compare_name(int old_dir, int new_dir, const char *at, const char *name,
	const struct sb_host_call *call, struct sb_changes *out, struct sb_error *err)
{
	struct compare c = { .out = out, .call = call };
	struct stat a, b;
	bool was, is;
	int r = 0;

	if (fstat(old_dir, &a) < 0 || fstat(new_dir, &b) < 0)
		return sb_fail_errno(err, "stat %s", at);
	c.dev[0] = a.st_dev;
	c.dev[1] = b.st_dev;
	was = fstatat(old_dir, name, &a, AT_SYMLINK_NOFOLLOW) == 0;
	is = fstatat(new_dir, name, &b, AT_SYMLINK_NOFOLLOW) == 0;
	sb_buf_init(&c.path, PATH_BYTES_MAX);
	sb_buf_add_str(&c.path, at);
	if (*at)
		sb_buf_add_char(&c.path, '/');
	r = sb_buf_check(&c.path, "path", err);
	if (r == 0 && was && is)
		r = both_sides(&c, old_dir, new_dir, name, err);
	else if (r == 0 && (was || is))
		r = one_sided(&c, was ? old_dir : new_dir, was ? 0 : 1, name, err);
	sb_buf_free(&c.path);
	return r;
}
