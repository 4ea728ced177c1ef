/* SPDX-License-Identifier: MIT */
/*
 * A storage against a model of it: plain copied directories. Random changes to files go to both;
 * snapshots, rollbacks, forks, deletions, compaction and restarts come in between, and both must be
 * equal in names, types, modes, owners, times and contents. Hard links: what is written through one
 * name reaches the others or not on overlayfs; never anything else. STORAGE_OPS and STORAGE_SEED
 * change what is tried, STORAGE_TRACE tells it.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <time.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/path.h>
#include <base/str.h>
#include <host/storage/storage-overlay-priv.h>
#include <host/storage/treecopy.h>

#include "tests/lib/plaintree.h"
#include "tests/lib/storagefix.h"

#define SESSIONS_MAX 4
#define SNAPS_MAX 10
#define ENTRIES_MAX 80

static uint64_t seed;

static uint64_t
rnd(void)
{
	uint64_t z = (seed += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static unsigned
below(unsigned n)
{
	return (unsigned)(rnd() % n);
}

struct world {
	struct storagefix *f;
	struct tmpdir t; /* of the model */
	struct {
		char id[20];
		char snap[SNAPS_MAX][20];
		unsigned n_snaps;
	} s[SESSIONS_MAX];
	unsigned n, next;
	unsigned ops;
};

static int
model_dir(struct world *w, const char *id, const char *snap)
{
	char name[64];
	int fd;

	(void)snprintf(name, sizeof name, "%s%s%s", id, snap ? "@" : "", snap ? snap : "");
	fd = openat(w->t.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void
model_remove(struct world *w, const char *id, const char *snap)
{
	struct sb_error err = { 0 };
	char name[64];

	(void)snprintf(name, sizeof name, "%s%s%s", id, snap ? "@" : "", snap ? snap : "");
	assert_ok(sb_path_remove_tree(w->t.fd, name, &err), &err);
}

/* Copies `from` to a new directory of that name, instead of what is there. */
static void
model_copy(struct world *w, int from, const char *id, const char *snap)
{
	struct sb_error err = { 0 };
	char name[64];
	int to;

	(void)snprintf(name, sizeof name, "%s%s%s", id, snap ? "@" : "", snap ? snap : "");
	model_remove(w, id, snap);
	assert_int_equal(mkdirat(w->t.fd, name, 0755), 0);
	to = openat(w->t.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(to >= 0);
	assert_ok(sb_treecopy(from, to, NULL, &err), &err);
	(void)close(to);
}

static int
real_dir(struct world *w, const char *id)
{
	int fd = open(storagefix_path(w->f, id, ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void
check(struct world *w, unsigned i, const char *what)
{
	char text[100];
	int real = real_dir(w, w->s[i].id), model = model_dir(w, w->s[i].id, NULL);

	(void)snprintf(text, sizeof text, "op %u, session %s after %s", w->ops, w->s[i].id, what);
	plaintree_assert_same(real, model, text);
	(void)close(real);
	(void)close(model);
}

/* A path that may or may not be there, in a directory that is. */
static void
some_path(int model, char *out, size_t size)
{
	struct plaintree_paths p = { .n = 0 };
	unsigned k;

	plaintree_walk(model, "", true, &p);
	k = below((unsigned)p.n + 1);
	(void)snprintf(out, size, "%s%sn%u", k < p.n ? p.v[k] : "", k < p.n ? "/" : "", below(9));
	plaintree_paths_free(&p);
}

/* One that is there; false: the tree is empty. */
static bool
old_path(int model, char *out, size_t size)
{
	struct plaintree_paths p = { .n = 0 };
	bool any;

	plaintree_walk(model, "", false, &p);
	any = p.n > 0;
	if (any)
		(void)snprintf(out, size, "%s", p.v[below((unsigned)p.n)]);
	plaintree_paths_free(&p);
	return any;
}

static void
set_time(int dir, const char *path, unsigned n)
{
	const struct timespec t[2] = { { .tv_sec = 1500000000 },
		{ .tv_sec = 1600000000 + n, .tv_nsec = n * 1000 + 1 } };

	(void)utimensat(dir, *path ? path : ".", t, AT_SYMLINK_NOFOLLOW);
}

static void
set_times(int dir, const char *path, unsigned n)
{
	char up[4000];
	char *slash;

	(void)snprintf(up, sizeof up, "%s", path);
	set_time(dir, path, n);
	slash = strrchr(up, '/');
	if (slash)
		*slash = '\0';
	set_time(dir, slash ? up : "", n);
}

struct change {
	enum { WRITE, PATCH, CUT, MKDIR, RENAME, REMOVE, SYMLINK, LINK, CHMOD, FIFO, KINDS } kind;
	char path[4000], to[4000];
	char bytes[BYTES_MAX];
	size_t len;
	off_t at;
	mode_t mode;
};

static int
do_write(int dir, const struct change *c, int flags)
{
	int fd = openat(dir, c->path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0644);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = c->kind == CUT ? ftruncate(fd, c->at) : pwrite(fd, c->bytes, c->len, c->at);
	(void)close(fd);
	return n < 0 ? -1 : 0;
}

/* What the change does to one tree; errno as the kernel says. */
static int
apply(int dir, const struct change *c)
{
	struct stat st;

	switch (c->kind) {
	case WRITE: return do_write(dir, c, O_CREAT | O_TRUNC);
	case PATCH:
	case CUT: return do_write(dir, c, 0);
	case MKDIR: return mkdirat(dir, c->path, 0755);
	case RENAME: return renameat(dir, c->path, dir, c->to);
	case REMOVE:
		if (fstatat(dir, c->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -1;
		return sb_path_remove_tree(dir, c->path, NULL) < 0 ? -1 : 0;
	case SYMLINK: return symlinkat(c->to, dir, c->path);
	case LINK: return linkat(dir, c->path, dir, c->to, 0);
	case CHMOD:
		/* Not of what cannot be told apart afterwards. */
		if (fstatat(dir, c->path, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode))
			return -1;
		return fchmodat(dir, c->path, c->mode, 0);
	default: return mkfifoat(dir, c->path, 0644);
	}
}

/* A tree removal goes through a path whose parent is the directory given. */
static int
apply_at(int root, const struct change *c)
{
	struct change leaf = *c;
	char up[4000];
	char *slash;
	int dir, r, sys;

	if (c->kind != REMOVE)
		return apply(root, c);
	(void)snprintf(up, sizeof up, "%s", c->path);
	slash = strrchr(up, '/');
	if (!slash)
		return apply(root, c);
	*slash = '\0';
	dir = openat(root, up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -1;
	(void)snprintf(leaf.path, sizeof leaf.path, "%s", slash + 1);
	r = apply(dir, &leaf);
	sys = errno;
	(void)close(dir);
	errno = sys;
	return r;
}

/* The directory that holds `path`, and its times. */
static int
parent_of(int root, const char *path, struct timespec t[2], const char **leaf)
{
	struct sb_error err = { 0 };
	struct stat st;
	int fd = sb_path_open_parent(root, path, leaf, &err);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	t[0] = st.st_atim;
	t[1] = st.st_mtim;
	return fd;
}

/* The file under another inode, as it is. */
static void
break_link(int model, const char *path)
{
	static char bytes[64 * BYTES_MAX];
	struct stat st;
	struct timespec t[2], up[2];
	size_t n = plaintree_content(model, path, bytes);
	const char *leaf;
	int fd, dir = parent_of(model, path, up, &leaf);

	assert_int_equal(fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW), 0);
	fd = openat(dir, ".broken", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	t[0] = st.st_atim;
	t[1] = st.st_mtim;
	assert_int_equal(fchmod(fd, st.st_mode & 07777), 0);
	assert_int_equal(futimens(fd, t), 0);
	(void)close(fd);
	assert_int_equal(renameat(dir, ".broken", dir, leaf), 0);
	assert_int_equal(futimens(dir, up), 0);
	(void)close(dir);
}

/* `path` is one more name of `first`, whatever it was. */
static void
join_link(int model, const char *first, const char *path)
{
	struct timespec up[2];
	const char *leaf;
	int dir = parent_of(model, path, up, &leaf);

	assert_int_equal(unlinkat(dir, leaf, 0), 0);
	assert_int_equal(linkat(model, first, dir, leaf, 0), 0);
	assert_int_equal(futimens(dir, up), 0);
	(void)close(dir);
}

/*
 * A file with several names was changed in the storage: other names that did not change with it are
 * another file there, and so in the model from now on.
 */
static void
follow_links(int real, int model, const struct change *c)
{
	struct plaintree_paths p = { .n = 0 };
	struct stat st, other;
	bool apart = false;

	if (fstatat(model, c->path, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_nlink < 2 ||
		!S_ISREG(st.st_mode))
		return;
	plaintree_walk(model, "", false, &p);
	for (size_t i = 0; i < p.n; i++) {
		bool linked = strcmp(p.v[i], c->path) != 0 &&
			fstatat(model, p.v[i], &other, AT_SYMLINK_NOFOLLOW) == 0 &&
			other.st_ino == st.st_ino;

		if (linked && !plaintree_entry_differs(real, model, p.v[i])) {
			apart = true;
			free(p.v[i]);
			p.v[i] = strdup("");
		}
	}
	if (apart && strcmp(storagefix_kind, "btrfs") == 0)
		fail_msg("%s lost other names of it", c->path);
	if (apart)
		break_link(model, c->path);
	for (size_t i = 0; i < p.n && apart; i++)
		if (*p.v[i] && fstatat(model, p.v[i], &other, AT_SYMLINK_NOFOLLOW) == 0 &&
			other.st_ino == st.st_ino)
			join_link(model, c->path, p.v[i]);
	plaintree_paths_free(&p);
}

/*
 * Renaming one name of a file onto another does nothing, unless they are two files already. Only
 * regular files get several names.
 */
static bool
in_doubt(int model, const struct change *c)
{
	struct stat a, b;

	if (c->kind == LINK && fstatat(model, c->path, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
		!S_ISREG(a.st_mode))
		return true;
	return c->kind == RENAME && fstatat(model, c->path, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
		fstatat(model, c->to, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_ino == b.st_ino;
}

static void
some_change(int model, struct change *c)
{
	struct plaintree_paths all = { .n = 0 };
	bool full;

	plaintree_walk(model, "", false, &all);
	full = all.n > ENTRIES_MAX;
	plaintree_paths_free(&all);
	memset(c, 0, sizeof *c);
	c->kind = full && below(2) ? REMOVE : below(KINDS);
	c->len = below(BYTES_MAX);
	for (size_t i = 0; i < c->len; i++)
		c->bytes[i] = (char)('a' + (i + c->len) % 26);
	c->at = c->kind == WRITE ? 0 : below(BYTES_MAX);
	c->mode = 0600 | below(0200);
	if (c->kind == WRITE || c->kind == MKDIR || c->kind == SYMLINK || c->kind == FIFO)
		some_path(model, c->path, sizeof c->path);
	else if (!old_path(model, c->path, sizeof c->path))
		(void)snprintf(c->path, sizeof c->path, "nothing");
	some_path(model, c->to, sizeof c->to);
}

static void
change_files(struct world *w, unsigned i)
{
	static struct change c;
	int real = real_dir(w, w->s[i].id), model = model_dir(w, w->s[i].id, NULL);
	int a, b, sys_a, sys_b;
	bool through;

	do
		some_change(model, &c);
	while (in_doubt(model, &c));
	errno = 0;
	a = apply_at(real, &c);
	sys_a = a < 0 ? errno : 0;
	through = a == 0 &&
		(c.kind == WRITE || c.kind == PATCH || c.kind == CUT || c.kind == CHMOD ||
			c.kind == LINK || c.kind == RENAME);
	if (a == 0) {
		set_times(real, c.path, w->ops);
		if (c.kind == RENAME || c.kind == LINK)
			set_times(real, c.to, w->ops);
	}
	if (through)
		follow_links(real, model, &c);
	errno = 0;
	b = apply_at(model, &c);
	sys_b = b < 0 ? errno : 0;
	if (b == 0) {
		set_times(model, c.path, w->ops);
		if (c.kind == RENAME || c.kind == LINK)
			set_times(model, c.to, w->ops);
	}
	/* POSIX allows either for a directory that is not empty. */
	if (sys_a == EEXIST && sys_b == ENOTEMPTY)
		sys_a = sys_b;
	if (a != b || (sys_a != sys_b && c.kind != REMOVE && c.kind != CHMOD))
		fail_msg("op %u: change %d of %s to %s: %d (%s), the model %d (%s)", w->ops, c.kind,
			c.path, c.to, a, strerror(sys_a), b, strerror(sys_b));
	if (getenv("STORAGE_TRACE"))
		print_message("# op %u session %s: %d %s > %s: %d\n", w->ops, w->s[i].id, c.kind,
			c.path, c.to, a);
	(void)close(real);
	(void)close(model);
}

static void
add_session(struct world *w, const char *id)
{
	(void)snprintf(w->s[w->n].id, sizeof w->s[w->n].id, "%s", id);
	w->s[w->n++].n_snaps = 0;
}

static void
op_create(struct world *w)
{
	char id[20], base[500];
	int fd;

	if (w->n == SESSIONS_MAX)
		return;
	(void)snprintf(id, sizeof id, "s%u", w->next++);
	storagefix_create(w->f, id);
	(void)snprintf(base, sizeof base, "%s/img", w->f->bases);
	fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	model_copy(w, fd, id, NULL);
	(void)close(fd);
	add_session(w, id);
	check(w, w->n - 1, "create");
}

/* Somebody holds a file or a directory of the workspace, so that it cannot be exchanged. */
static int
hold_something(struct world *w, unsigned i)
{
	int model = model_dir(w, w->s[i].id, NULL), real, fd = -1;
	char path[4000];

	if (old_path(model, path, sizeof path)) {
		real = real_dir(w, w->s[i].id);
		fd = openat(real, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		(void)close(real);
	}
	(void)close(model);
	return fd;
}

static void
op_snapshot(struct world *w, unsigned i)
{
	char name[20];
	int held = below(2) ? hold_something(w, i) : -1;
	int model;

	if (w->s[i].n_snaps < SNAPS_MAX) {
		(void)snprintf(name, sizeof name, "t%u", w->next++);
		storagefix_snap(w->f, w->s[i].id, name);
		model = model_dir(w, w->s[i].id, NULL);
		model_copy(w, model, w->s[i].id, name);
		(void)close(model);
		(void)snprintf(w->s[i].snap[w->s[i].n_snaps++], sizeof name, "%s", name);
	}
	if (held >= 0)
		(void)close(held);
	check(w, i, "snapshot");
}

static void
op_rollback(struct world *w, unsigned i)
{
	bool drop = below(4) == 0;
	unsigned k;
	int from;

	if (w->s[i].n_snaps == 0)
		return;
	k = below(w->s[i].n_snaps);
	assert_ok(w->f->st->ops->rollback_live(w->f->st, w->s[i].id, w->s[i].snap[k], drop, NULL,
			  &w->f->err),
		&w->f->err);
	from = model_dir(w, w->s[i].id, w->s[i].snap[k]);
	model_copy(w, from, w->s[i].id, NULL);
	(void)close(from);
	while (drop && w->s[i].n_snaps > k + 1)
		model_remove(w, w->s[i].id, w->s[i].snap[--w->s[i].n_snaps]);
	check(w, i, "rollback");
}

static void
op_fork(struct world *w, unsigned i)
{
	char id[20];
	unsigned k;
	int from;

	if (w->s[i].n_snaps == 0 || w->n == SESSIONS_MAX)
		return;
	k = below(w->s[i].n_snaps);
	(void)snprintf(id, sizeof id, "s%u", w->next++);
	storagefix_fork(w->f, id, w->s[i].id, w->s[i].snap[k]);
	from = model_dir(w, w->s[i].id, w->s[i].snap[k]);
	model_copy(w, from, id, NULL);
	(void)close(from);
	add_session(w, id);
	check(w, w->n - 1, "fork");
}

static void
op_delete(struct world *w, unsigned i)
{
	unsigned k;

	if (w->s[i].n_snaps == 0)
		return;
	k = below(w->s[i].n_snaps);
	assert_ok(w->f->st->ops->snapshot_delete(w->f->st, w->s[i].id, w->s[i].snap[k], &w->f->err),
		&w->f->err);
	model_remove(w, w->s[i].id, w->s[i].snap[k]);
	memmove(w->s[i].snap[k], w->s[i].snap[k + 1],
		(--w->s[i].n_snaps - k) * sizeof w->s[i].snap[0]);
	check(w, i, "delete");
}

static void
op_destroy(struct world *w, unsigned i)
{
	if (w->n < 2)
		return;
	assert_ok(w->f->st->ops->destroy(w->f->st, w->s[i].id, &w->f->err), &w->f->err);
	while (w->s[i].n_snaps > 0)
		model_remove(w, w->s[i].id, w->s[i].snap[--w->s[i].n_snaps]);
	model_remove(w, w->s[i].id, NULL);
	w->s[i] = w->s[--w->n];
}

static void
thresholds(struct world *w)
{
	struct sb_storage_overlay *o = (struct sb_storage_overlay *)w->f->st;

	if (strcmp(storagefix_kind, "btrfs") == 0)
		return;
	o->flat_at = 3 + below(6);
	o->merge_at = 1 + below(3);
}

/*
 * Every path that differs in the model is told by the diff, itself or with a directory that was
 * renamed; and nothing else is.
 */
static bool
covered(const struct sb_changes *c, const char *path)
{
	for (size_t i = 0; i < c->n; i++) {
		const char *const two[] = { c->v[i].path, c->v[i].from };

		for (int k = 0; k < 2; k++) {
			size_t len = two[k] ? strlen(two[k]) : 0;

			if (two[k] && strncmp(two[k], path, len) == 0 &&
				(path[len] == '\0' ||
					(path[len] == '/' && c->v[i].kind == SB_HOST_RENAMED)))
				return true;
		}
	}
	return false;
}

static void
tell(const struct sb_changes *c, const char *what)
{
	for (size_t i = 0; i < c->n; i++)
		print_message("# %s: %s %s %s\n", what, sb_host_change_name(c->v[i].kind),
			c->v[i].path, c->v[i].from ? c->v[i].from : "");
}

static void
op_diff(struct world *w, unsigned i)
{
	sb_auto(sb_changes) struct sb_changes got = { .max = 10000 }, want = { .max = 10000 };
	const char *from, *to = NULL;
	int a, b;

	if (w->s[i].n_snaps == 0)
		return;
	from = w->s[i].snap[below(w->s[i].n_snaps)];
	if (below(2))
		to = w->s[i].snap[below(w->s[i].n_snaps)];
	assert_ok(w->f->st->ops->diff(w->f->st, w->s[i].id, from, to, NULL, &got, &w->f->err),
		&w->f->err);
	sb_changes_finish(&got);
	a = model_dir(w, w->s[i].id, from);
	b = model_dir(w, w->s[i].id, to);
	assert_ok(sb_changes_compare(a, b, NULL, &want, &w->f->err), &w->f->err);
	for (size_t k = 0; k < want.n; k++)
		if (!covered(&got, want.v[k].path)) {
			tell(&got, "got");
			tell(&want, "want");
			fail_msg("op %u: diff from %s to %s misses %s", w->ops, from,
				to ? to : "now", want.v[k].path);
		}
	for (size_t k = 0; k < got.n; k++)
		if (got.v[k].kind != SB_HOST_RENAMED && !covered(&want, got.v[k].path)) {
			bool inside = false;

			/* A path below a renamed directory is told by its new name. */
			for (size_t m = 0; m < got.n; m++)
				inside |= got.v[m].kind == SB_HOST_RENAMED &&
					sb_str_starts(got.v[k].path, got.v[m].path);
			if (!inside)
				fail_msg("op %u: diff from %s to %s has %s, which did not change",
					w->ops, from, to ? to : "now", got.v[k].path);
		}
	(void)close(a);
	(void)close(b);
}

static void
one_op(struct world *w)
{
	unsigned i = below(w->n), kind = below(100);

	w->ops++;
	if (getenv("STORAGE_TRACE") && kind >= 80)
		print_message("# op %u session %s: of kind %u\n", w->ops, w->s[i].id, kind);
	if (kind < 80)
		change_files(w, i);
	else if (kind < 88)
		op_snapshot(w, i);
	else if (kind < 91)
		op_rollback(w, i);
	else if (kind < 92)
		op_fork(w, i);
	else if (kind < 94)
		op_delete(w, i);
	else if (kind < 95)
		op_create(w);
	else if (kind < 96 && below(3) == 0)
		op_destroy(w, i);
	else if (kind < 98)
		assert_ok(w->f->st->ops->sweep(w->f->st, &w->f->err), &w->f->err);
	else if (kind < 99)
		op_diff(w, i);
	else if (below(3) == 0) {
		storagefix_reopen(w->f);
		thresholds(w);
		check(w, i, "restart");
	}
	if ((getenv("STORAGE_TRACE") || w->ops % 16 == 0) && i < w->n)
		check(w, i, "changes");
}

/* Every snapshot that is left is what the model has of it. */
static void
check_all(struct world *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		check(w, i, "all");
		for (unsigned k = 0; k < w->s[i].n_snaps; k++) {
			int model = model_dir(w, w->s[i].id, w->s[i].snap[k]), real;

			storagefix_rollback(w->f, w->s[i].id, w->s[i].snap[k]);
			real = real_dir(w, w->s[i].id);
			plaintree_assert_same(real, model, w->s[i].snap[k]);
			(void)close(real);
			(void)close(model);
		}
	}
}

static unsigned
number(const char *name, unsigned otherwise)
{
	const char *v = getenv(name);

	return v && *v ? (unsigned)strtoul(v, NULL, 10) : otherwise;
}

static void
a_storage_is_as_good_as_copies(void **state)
{
	struct storagefix *f = *state;
	struct world w = { .f = f };
	unsigned ops = number("STORAGE_OPS", 600);

	if (!f)
		skip();
	seed = number("STORAGE_SEED", (unsigned)time(NULL));
	print_message("# seed %llu, %u operations\n", (unsigned long long)seed, ops);
	tmpdir_make(&w.t);
	thresholds(&w);
	op_create(&w);
	while (w.ops < ops)
		one_op(&w);
	check_all(&w);
	tmpdir_remove(&w.t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_storage_is_as_good_as_copies, storagefix_setup,
			storagefix_teardown),
	};

	return cmocka_run_group_tests(tests, storagefix_group_setup, storagefix_group_teardown);
}
