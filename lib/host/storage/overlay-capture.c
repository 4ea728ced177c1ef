/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/overlay-capture.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/str.h>
#include <host/storage/overlay-layer.h>
#include <host/storage/treecopy.h>

#define DEPTH_MAX 2048
#define REMEMBER_MAX 2000000
/* A change within this of the copy may be followed by one with the same time stamp. */
#define RACY_NS 20000000

/* An entry of the upper, as it was. */
struct entry {
	char *name;
	char *redirect; /* of a directory, NULL: none */
	ino_t ino;
	dev_t rdev;
	mode_t mode;
	off_t size;
	struct timespec ctim;
	bool opaque, whiteout, racy;
	struct entry *kids; /* by name */
	size_t n_kids;
};

struct sb_overlay_capture {
	struct entry root;
};

/* A file with several names, and where its first copy is. */
struct link {
	ino_t ino;
	char *path; /* from the root of the copy */
};

struct take {
	int root;   /* of the copy; -1: only look */
	bool whole; /* there is no `before` */
	bool again; /* this cannot be told by a layer */
	int64_t now_ns;
	unsigned depth;
	struct sb_overlay_capture_stats st;
	struct link *links;
	size_t n_links, cap_links;
};

/* One directory under way; those of the copy are made when something goes into them. */
struct level {
	struct level *up;
	const char *name;
	int in, out; /* out -1: not made */
	const struct stat *st;
	bool opaque;             /* the copy must hide what is below it */
	bool marks;              /* the copy has the marks of the original */
	const struct entry *old; /* NULL: everything is new */
};

static void
entry_clear(struct entry *e)
{
	for (size_t i = 0; i < e->n_kids; i++)
		entry_clear(&e->kids[i]);
	free(e->kids);
	free(e->name);
	free(e->redirect);
}

void
sb_overlay_capture_free(struct sb_overlay_capture *c)
{
	if (!c)
		return;
	entry_clear(&c->root);
	free(c);
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static const struct entry *
find_kid(const struct entry *dir, const char *name)
{
	struct entry key = { .name = (char *)name };

	return dir && dir->n_kids ? bsearch(&key, dir->kids, dir->n_kids, sizeof key, by_name) :
				    NULL;
}

static bool
same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* The directory of the copy, made with its parents. Attributes come at the end. */
static int
need_out(struct take *t, struct level *l, struct sb_error *err)
{
	int r;

	if (l->out >= 0 || t->root < 0)
		return 0;
	r = need_out(t, l->up, err);
	if (r < 0)
		return r;
	if (mkdirat(l->up->out, l->name, 0700) < 0)
		return sb_fail_errno(err, "copy directory %s", l->name);
	l->out = openat(l->up->out, l->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return l->out < 0 ? sb_fail_errno(err, "open the copy of %s", l->name) : 0;
}

/* All went in: owner, mode, times and marks of the directory. */
static int
finish_out(struct level *l, struct sb_error *err)
{
	if (l->out < 0)
		return 0;
	if (l->opaque && fsetxattr(l->out, SB_OVERLAY_OPAQUE, "y", 1, 0) < 0)
		return sb_fail_errno(err, "mark the copy of %s", l->name);
	return sb_overlay_layer_copy_meta(l->in, l->out, l->st, l->marks, err);
}

static int
put_whiteout(struct take *t, struct level *l, const char *name, struct sb_error *err)
{
	int r = need_out(t, l, err);

	t->st.changed++;
	if (r < 0 || t->root < 0)
		return r;
	return mknodat(l->out, name, S_IFCHR, makedev(0, 0)) < 0 ?
		sb_fail_errno(err, "whiteout of %s", name) :
		0;
}

/* The path of `name` in the copy. */
static char *
out_path(const struct level *l, const char *name)
{
	char *path = strdup(name);

	for (; l->up && path; l = l->up) {
		char *longer = sb_str_printf("%s/%s", l->name, path);

		free(path);
		path = longer;
	}
	return path;
}

/* 1: made as another name of an earlier copy; 0: it is the first, and noted. */
static int
try_link(struct take *t, struct level *l, const char *name, ino_t ino, struct sb_error *err)
{
	for (size_t i = 0; i < t->n_links; i++)
		if (t->links[i].ino == ino)
			return linkat(t->root, t->links[i].path, l->out, name, 0) < 0 ?
				sb_fail_errno(err, "link %s", name) :
				1;
	if (t->n_links == t->cap_links) {
		size_t cap = t->cap_links ? t->cap_links * 2 : 16;
		struct link *v = reallocarray(t->links, cap, sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "hard links");
		t->links = v;
		t->cap_links = cap;
	}
	t->links[t->n_links].ino = ino;
	t->links[t->n_links].path = out_path(l, name);
	if (!t->links[t->n_links].path)
		return sb_fail(err, SB_E_NOMEM, "hard links");
	t->n_links++;
	return 0;
}

static int
copy_file(struct take *t, struct level *l, const char *name, const struct stat *st,
	struct sb_error *err)
{
	sb_autoclose int in =
		openat(l->in, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME | O_CLOEXEC);
	sb_autoclose int out = -1;
	int r;

	if (in < 0)
		return sb_fail_errno(err, "open %s", name);
	if (st->st_nlink > 1) {
		r = try_link(t, l, name, st->st_ino, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	/*
	 * A page that stays dirty takes further writes through a mapping without a new time; sent
	 * off, its next write is noticed.
	 */
	(void)sync_file_range(in, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE);
	out = openat(l->out, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return sb_fail_errno(err, "copy %s", name);
	r = st->st_size > 0 ? sb_treecopy_data(in, out, st->st_size, err) : 0;
	if (r < 0)
		return sb_wrap(err, r, "copy %s", name);
	t->st.bytes += (uint64_t)st->st_size;
	return sb_overlay_layer_copy_meta(in, out, st, false, err);
}

/* Symlinks, fifos, sockets, devices and whiteouts. */
static int
copy_special(struct level *l, const char *name, const struct stat *st, struct sb_error *err)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	char target[4097];
	ssize_t n;

	if (S_ISLNK(st->st_mode)) {
		n = readlinkat(l->in, name, target, sizeof target - 1);
		if (n < 0)
			return sb_fail_errno(err, "read link %s", name);
		target[n] = '\0';
		if (symlinkat(target, l->out, name) < 0)
			return sb_fail_errno(err, "copy link %s", name);
	} else if (mknodat(l->out, name, st->st_mode, st->st_rdev) < 0) {
		return sb_fail_errno(err, "copy %s", name);
	}
	if (fchownat(l->out, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "set owner of %s", name);
	if (!S_ISLNK(st->st_mode) && fchmodat(l->out, name, st->st_mode & 07777, 0) < 0)
		return sb_fail_errno(err, "set mode of %s", name);
	return utimensat(l->out, name, times, AT_SYMLINK_NOFOLLOW) < 0 ?
		sb_fail_errno(err, "set times of %s", name) :
		0;
}

static bool
unchanged(const struct entry *old, const struct entry *now)
{
	if (!old || old->whiteout != now->whiteout)
		return false;
	/* The kernel gives all whiteouts one inode, whose time changes with each. */
	if (now->whiteout)
		return true;
	return !old->racy && old->ino == now->ino && old->mode == now->mode &&
		old->size == now->size && old->rdev == now->rdev &&
		old->ctim.tv_sec == now->ctim.tv_sec && old->ctim.tv_nsec == now->ctim.tv_nsec;
}

static int
take_leaf(struct take *t, struct level *l, const struct entry *now, const struct stat *st,
	struct sb_error *err)
{
	int r;

	if (unchanged(find_kid(l->old, now->name), now))
		return 0;
	t->st.changed++;
	if (t->root < 0)
		return 0;
	r = need_out(t, l, err);
	if (r < 0)
		return r;
	return S_ISREG(st->st_mode) ? copy_file(t, l, now->name, st, err) :
				      copy_special(l, now->name, st, err);
}

static int take_dir(struct take *t, struct level *l, struct entry *self, struct sb_error *err);

/*
 * A directory that was there goes on with what it had then; a new one hides what may be below,
 * unless it came up from below itself. One that was moved here with a lower directory beneath it
 * cannot be told.
 */
static int
take_subdir(struct take *t, struct level *up, struct entry *now, const struct stat *st,
	struct sb_error *err)
{
	const struct entry *old = find_kid(up->old, now->name);
	bool was = old && S_ISDIR(old->mode) && old->ino == now->ino &&
		old->opaque == now->opaque && same_text(old->redirect, now->redirect);
	struct level l = { .up = up,
		.name = now->name,
		.in = -1,
		.out = -1,
		.st = st,
		.old = was ? old : NULL,
		.marks = t->whole,
		.opaque = !t->whole && !was && (now->opaque || old) };
	int r = 0;

	if (!t->whole && !was && now->redirect) {
		t->again = true;
		return 0;
	}
	if (++t->depth > DEPTH_MAX)
		return sb_fail(err, SB_E_LIMIT, "directories deeper than %d", DEPTH_MAX);
	l.in = openat(up->in, now->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l.in < 0)
		r = sb_fail_errno(err, "open %s", now->name);
	if (r == 0 && !unchanged(was ? old : NULL, now)) {
		t->st.changed++;
		r = need_out(t, &l, err);
	}
	if (r == 0)
		r = take_dir(t, &l, now, err);
	if (r == 0)
		r = finish_out(&l, err);
	if (l.in >= 0)
		(void)close(l.in);
	if (l.out >= 0)
		(void)close(l.out);
	t->depth--;
	return r;
}

static void
note_stat(struct take *t, struct entry *e, const struct stat *st)
{
	int64_t ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;

	e->ino = st->st_ino;
	e->rdev = st->st_rdev;
	e->mode = st->st_mode;
	e->size = S_ISDIR(st->st_mode) ? 0 : st->st_size;
	e->ctim = st->st_ctim;
	e->whiteout = sb_overlay_layer_is_whiteout(st);
	e->racy = ctime_ns > t->now_ns - RACY_NS;
}

/* The marks of a directory. */
static int
note_marks(int dir, struct entry *e, struct sb_error *err)
{
	sb_autoclose int fd = openat(dir, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	sb_autofree char *opaque = NULL;
	bool bad = fd < 0;

	if (!bad)
		opaque = sb_overlay_layer_mark(fd, SB_OVERLAY_OPAQUE, &bad);
	if (!bad)
		e->redirect = sb_overlay_layer_mark(fd, SB_OVERLAY_REDIRECT, &bad);
	if (bad)
		return sb_fail_errno(err, "marks of %s", e->name);
	/* "x" means that whiteouts in it are told in another way, which no upper of ours has. */
	e->opaque = opaque && opaque[0] == 'y';
	return 0;
}

static int
add_kid(struct entry *dir, size_t *cap, const char *name, struct entry **out, struct sb_error *err)
{
	if (dir->n_kids == *cap) {
		size_t n = *cap ? *cap * 2 : 8;
		struct entry *v = reallocarray(dir->kids, n, sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "list of an upper");
		dir->kids = v;
		*cap = n;
	}
	*out = &dir->kids[dir->n_kids];
	**out = (struct entry){ .name = strdup(name) };
	if (!(*out)->name)
		return sb_fail(err, SB_E_NOMEM, "list of an upper");
	dir->n_kids++;
	return 0;
}

/* Reads the names, so that nothing is made in the copy while a directory is read. */
static int
list_dir(int fd, struct entry *self, struct sb_error *err)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_NOATIME | O_CLOEXEC);
	sb_autoclosedir DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct entry *kid;
	struct dirent *e;
	size_t cap = 0;
	int r = 0;

	if (!d) {
		if (copy >= 0)
			(void)close(copy);
		return sb_fail_errno(err, "read an upper");
	}
	while (r == 0 && (errno = 0, e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = add_kid(self, &cap, e->d_name, &kid, err);
	if (r == 0 && errno)
		r = sb_fail_errno(err, "read an upper");
	if (self->n_kids)
		qsort(self->kids, self->n_kids, sizeof *self->kids, by_name);
	return r;
}

static int
take_entry(struct take *t, struct level *l, struct entry *e, struct sb_error *err)
{
	struct stat st;
	int r;

	if (fstatat(l->in, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		/* Only when somebody may move meanwhile, and then it is a difference. */
		if (errno == ENOENT && t->root < 0) {
			t->st.changed++;
			return 0;
		}
		return sb_fail_errno(err, "stat %s", e->name);
	}
	t->st.entries++;
	note_stat(t, e, &st);
	if (!S_ISDIR(st.st_mode))
		return take_leaf(t, l, e, &st, err);
	r = note_marks(l->in, e, err);
	return r < 0 ? r : take_subdir(t, l, e, &st, err);
}

/* What was there and is no more. A whiteout that went away brings a lower file back. */
static int
take_gone(struct take *t, struct level *l, const struct entry *self, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; l->old && i < l->old->n_kids && r == 0; i++) {
		const struct entry *old = &l->old->kids[i];

		if (find_kid(self, old->name))
			continue;
		if (old->whiteout)
			t->again = true;
		r = put_whiteout(t, l, old->name, err);
	}
	return r;
}

static int
take_dir(struct take *t, struct level *l, struct entry *self, struct sb_error *err)
{
	int r = list_dir(l->in, self, err);

	for (size_t i = 0; i < self->n_kids && r == 0 && !t->again; i++)
		r = take_entry(t, l, &self->kids[i], err);
	return r < 0 || t->again ? r : take_gone(t, l, self, err);
}

static int
take_all(struct take *t, int upper, int to, const struct sb_overlay_capture *before,
	struct sb_overlay_capture *now, struct sb_error *err)
{
	struct level l = { .name = "",
		.in = upper,
		.out = to,
		.old = before ? &before->root : NULL };
	struct timespec ts;
	struct stat st;
	int r;

	if (fstat(upper, &st) < 0)
		return sb_fail_errno(err, "stat an upper");
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &ts);
	t->now_ns = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	t->whole = !before;
	l.st = &st;
	note_stat(t, &now->root, &st);
	if (!unchanged(l.old, &now->root))
		t->st.changed++;
	r = take_dir(t, &l, &now->root, err);
	if (r == 0 && !t->again && to >= 0)
		r = sb_overlay_layer_copy_meta(upper, to, &st, false, err);
	for (size_t i = 0; i < t->n_links; i++)
		free(t->links[i].path);
	free(t->links);
	return r;
}

int
sb_overlay_capture_take(int upper, int to, const struct sb_overlay_capture *before,
	struct sb_overlay_capture **out, struct sb_overlay_capture_stats *stats,
	struct sb_error *err)
{
	struct sb_overlay_capture *now = calloc(1, sizeof *now);
	struct take t = { .root = to };
	int r = now ? take_all(&t, upper, to, before, now, err) :
		      sb_fail(err, SB_E_NOMEM, "list of an upper");

	*stats = t.st;
	if (r < 0 || t.again || t.st.entries > REMEMBER_MAX) {
		sb_overlay_capture_free(now);
		now = NULL;
	}
	*out = now;
	return r < 0 ? r : t.again;
}

int
sb_overlay_capture_differs(int upper, const struct sb_overlay_capture *before, struct sb_error *err)
{
	struct sb_overlay_capture *now = calloc(1, sizeof *now);
	struct take t = { .root = -1 };
	int r = now ? take_all(&t, upper, -1, before, now, err) :
		      sb_fail(err, SB_E_NOMEM, "list of an upper");

	sb_overlay_capture_free(now);
	return r < 0 ? r : t.again || t.st.changed > 0;
}
