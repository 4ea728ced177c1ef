/* SPDX-License-Identifier: MIT */
/* The last part of receiving: turns what is staged into a commit, then updates the manifest. */
#include "config.h"

#include <sync/replica/receive-priv.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <base/path.h>
#include <base/work.h>
#include <sync/tree/nstime.h>
#include <sync/replica/receive-links.h>
#include <sync/replica/stage.h>

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The member of the sorted list that `path` is, or lies beneath; NULL when there is none. */
static char **
covering(const struct sb_strlist *sorted, const char *path)
{
	sb_autofree char *buf = sorted->n ? strdup(path) : NULL;
	char **hit = NULL;

	for (char *p = buf; p && !hit; p++) {
		char was = *(p = strchrnul(p, '/'));

		*p = 0;
		hit = bsearch(&buf, sorted->v, sorted->n, sizeof *sorted->v, by_text);
		*p = was;
		if (!was)
			break;
	}
	return hit;
}

int
sb_receive_hold(struct sb_receive *r, const char *path, const char *needed, struct sb_error *err)
{
	for (size_t i = 0; i < r->ops.n; i++) {
		struct sb_op *op = &r->ops.v[i];

		if (op->kind != SB_OP_FILE || op->from || strcmp(op->path, path) != 0)
			continue;
		op->from = strdup(needed);
		return op->from ? 0 : sb_fail(err, SB_E_NOMEM, "receive: out of memory");
	}
	return 0;
}

/* What was moved is not deleted; a directory that was emptied by moves still is. */
static void
drop_moved(struct sb_receive *r)
{
	size_t kept = 0;

	if (!r->moved_from.n)
		return;
	qsort(r->moved_from.v, r->moved_from.n, sizeof *r->moved_from.v, by_text);
	for (size_t i = 0; i < r->ops.n; i++) {
		struct sb_op *op = &r->ops.v[i];

		if (op->kind == SB_OP_DEL && covering(&r->moved_from, op->path)) {
			free(op->path);
			free(op->from);
			continue;
		}
		r->ops.v[kept++] = *op;
	}
	r->ops.n = kept;
}

/* Does this directory, or one beneath it, hold anything that no scan listed? */
struct unlisted {
	struct sb_receive *r;
	struct sb_error *err;
};

static int
find_unlisted(const char *path, const struct sb_dir *dir, struct unlisted *u)
{
	sb_autoclose int fd = -1;
	struct dirent *e;
	DIR *d;
	int n = 0;

	fd = sb_path_open(u->r->rep->rootfd, path, O_RDONLY | O_DIRECTORY, 0, NULL);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return 0; /* the commit finds out */
	fd = -1;
	while (n == 0 && (e = readdir(d)))
		n = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
			!sb_manifest_dir_find(dir, e->d_name, strlen(e->d_name));
	(void)closedir(d);
	return n;
}

static int
find_unlisted_in(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	(void)len;
	return e->type == SB_ENTRY_DIR && find_unlisted(path, e->dir, arg) ? SB_E_EXISTS : 0;
}

/*
 * Directories that were to become something else and cannot stay as they are: nothing in them is
 * deleted, and nothing is moved away.
 */
static int
leave_dirs(struct sb_receive *r, struct sb_strlist *dirs, struct sb_commit_result *res,
	struct sb_error *err)
{
	size_t kept = 0;
	int n = sb_strlist_check(dirs, err);

	if (n < 0 || !dirs->n)
		return n;
	qsort(dirs->v, dirs->n, sizeof *dirs->v, by_text);
	for (size_t i = 0; i < r->ops.n; i++) {
		struct sb_op *op = &r->ops.v[i];
		bool in = covering(dirs, op->path),
		     tell = in ? op->kind == SB_OP_LINK :
				 op->kind == SB_OP_MOVE && covering(dirs, op->from);

		if (tell && n == 0) {
			(void)sb_manifest_remove(r->added, op->path);
			n = sb_proto_result_add(res, op->path, SB_WHY_SOURCE, err);
		}
		if (in || tell) {
			free(op->path);
			free(op->from);
			continue;
		}
		r->ops.v[kept++] = *op;
	}
	r->ops.n = kept;
	return n;
}

/*
 * A directory that is to become something else, but holds what is not synced, stays as a whole:
 * nothing in it is deleted for a replacement that cannot take place.
 */
static int
drop_full_dirs(struct sb_receive *r, struct sb_commit_result *res, struct sb_error *err)
{
	struct unlisted u = { r, err };
	sb_auto(sb_strlist) struct sb_strlist full = { 0 };

	for (size_t i = 0; i < r->ops.n; i++) {
		const struct sb_op *op = &r->ops.v[i];
		const struct sb_entry *old = op->old.type == SB_ENTRY_DIR &&
				(op->kind == SB_OP_FILE || op->kind == SB_OP_LINK) ?
			sb_manifest_find(r->rep->scan.manifest, op->path) :
			NULL;
		int n;

		if (!old || old->type != SB_ENTRY_DIR ||
			(!find_unlisted(op->path, old->dir, &u) &&
				sb_manifest_walk_dir(old->dir, op->path, find_unlisted_in, &u) ==
					0))
			continue;
		sb_strlist_add(&full, op->path);
		n = sb_proto_result_add(res, op->path, SB_WHY_NOTEMPTY, err);
		if (n < 0)
			return n;
		(void)sb_manifest_remove(r->added, op->path);
	}
	return leave_dirs(r, &full, res, err);
}

/* Was the file at `path` to come, and did not? */
static bool
is_dropped(const struct sb_receive *r, const char *path)
{
	for (size_t i = 0; i < r->dropped.n; i++)
		if (strcmp(r->dropped.v[i], path) == 0)
			return true;
	return false;
}

/* Files whose source was lost: out of the stage, out of the plan. */
static int
drop_lost(struct sb_receive *r, struct sb_commit_result *res, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist dirs = { 0 };
	size_t kept = 0;

	if (!r->dropped.n)
		return 0;
	for (size_t i = 0; i < r->dropped.n; i++) {
		const char *leaf;
		int alive = sb_work_alive(err);
		struct sb_receive_dir *d =
			sb_receive_dir_get(r, r->dropped_staged.v[i], &leaf, err);
		const struct sb_entry *e = sb_manifest_find(r->added, r->dropped.v[i]);
		bool denied = e && e->type == SB_ENTRY_FILE && e->ino &&
			sb_receive_rec(r, (uint32_t)e->ino - 1)->unreadable;
		int n;

		if (!d)
			return err ? err->code : SB_E_SYS;
		(void)unlinkat(d->fd, leaf, 0);
		sb_receive_dir_put(r, d);
		if (alive < 0)
			return alive;
		(void)sb_manifest_remove(r->added, r->dropped.v[i]);
		n = sb_proto_result_add(res, r->dropped.v[i],
			denied ? SB_WHY_DENIED : SB_WHY_SOURCE, err);
		if (n < 0)
			return n;
	}
	for (size_t i = 0; i < r->ops.n; i++) {
		struct sb_op *op = &r->ops.v[i];
		bool lost = op->rec && op->kind == SB_OP_FILE &&
			sb_receive_rec(r, op->rec - 1)->state == REC_DROPPED;

		/* A name of a lost file that was to take the place of a directory, too. */
		if (op->old.type == SB_ENTRY_DIR &&
			(lost || (op->kind == SB_OP_LINK && is_dropped(r, op->from))))
			sb_strlist_add(&dirs, op->path);
		if (lost) {
			free(op->path);
			free(op->from);
			continue;
		}
		r->ops.v[kept++] = *op;
	}
	r->ops.n = kept;
	return leave_dirs(r, &dirs, res, err);
}

/*
 * Directories inside a staged one get their mode and time now, from the leaves up; `top` itself at
 * its commit.
 */
struct dir_row {
	char *path;
	uint16_t mode;
	int64_t mtime;
};

struct dir_rows {
	struct dir_row *v;
	size_t n, cap;
	struct sb_error *err;
	bool marked_only;
};

static int
gather_dir(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct dir_rows *d = arg;

	(void)len;
	if (e->type != SB_ENTRY_DIR || (d->marked_only && !(e->flags & SB_ENTRY_MARK)))
		return 0;
	if (d->n == d->cap) {
		size_t cap = d->cap ? d->cap * 2 : 64;
		struct dir_row *v = realloc(d->v, cap * sizeof *v);

		if (!v)
			return sb_fail(d->err, SB_E_NOMEM, "stage: out of memory");
		d->v = v;
		d->cap = cap;
	}
	d->v[d->n].path = strdup(path);
	d->v[d->n].mode = e->mode;
	d->v[d->n].mtime = e->mtime;
	if (!d->v[d->n].path)
		return sb_fail(d->err, SB_E_NOMEM, "stage: out of memory");
	d->n++;
	return 0;
}

static void
dir_rows_free(struct dir_rows *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->v[i].path);
	free(d->v);
}

static int
set_dir(int fd, uint16_t mode, int64_t mtime, struct sb_error *err)
{
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, sb_ns_to(mtime) };

	if (fchmod(fd, mode) < 0 || futimens(fd, ts) < 0)
		return sb_fail_errno(err, "set mode and time of a staged directory");
	return 0;
}

/*
 * The new directories of the plan that are staged as a whole, sorted, and which of them a later
 * operation still puts something into (a move, a hard link); and the targets of moves.
 */
struct staged_trees {
	struct sb_strlist trees, moves;
	bool *more;
};

static void
trees_free(struct staged_trees *t)
{
	sb_strlist_free(&t->trees);
	sb_strlist_free(&t->moves);
	free(t->more);
}

static int
trees_find(const struct sb_receive *r, struct staged_trees *t, struct sb_error *err)
{
	int n;

	for (size_t i = 0; i < r->ops.n; i++) {
		if (r->ops.v[i].kind == SB_OP_TREE)
			sb_strlist_add(&t->trees, r->ops.v[i].path);
		else if (r->ops.v[i].kind == SB_OP_MOVE)
			sb_strlist_add(&t->moves, r->ops.v[i].path);
	}
	n = sb_strlist_check(&t->trees, err);
	if (n == 0)
		n = sb_strlist_check(&t->moves, err);
	t->more = calloc(t->trees.n + 1, sizeof *t->more);
	if (n == 0 && !t->more)
		n = sb_fail(err, SB_E_NOMEM, "stage: out of memory");
	if (n < 0)
		return n;
	if (t->trees.n)
		qsort(t->trees.v, t->trees.n, sizeof *t->trees.v, by_text);
	if (t->moves.n)
		qsort(t->moves.v, t->moves.n, sizeof *t->moves.v, by_text);
	for (size_t i = 0; i < r->ops.n && n == 0; i++) {
		char **in = r->ops.v[i].kind == SB_OP_MOVE || r->ops.v[i].kind == SB_OP_LINK ?
			covering(&t->trees, r->ops.v[i].path) :
			NULL;

		if (in)
			t->more[in - t->trees.v] = true;
		n = sb_work_alive(err);
	}
	return n;
}

static bool
more_to_come(const struct staged_trees *t, const char *tree)
{
	char **at = covering(&t->trees, tree);

	return at && t->more[at - t->trees.v];
}

/* Does a directory that the plan changes or makes get its mode and time at the end? */
static bool
dressed_last(const struct staged_trees *t, const char *path)
{
	char **in = covering(&t->trees, path);

	if (in && (strcmp(*in, path) == 0 || t->more[in - t->trees.v]))
		return true;
	return t->moves.n && bsearch(&path, t->moves.v, t->moves.n, sizeof *t->moves.v, by_text);
}

static int
dress_tree(struct sb_receive *r, const struct sb_op *op, struct sb_error *err)
{
	struct sb_entry *top = sb_manifest_find(r->added, op->path);
	struct dir_rows d = { .err = err };
	char name[16];
	sb_autoclose int fd = -1;
	int n;

	fd = sb_path_open(r->stage->newfd, sb_stage_name('t', op->stage, name),
		O_RDONLY | O_DIRECTORY, 0, err);
	if (fd < 0)
		return fd;
	n = top ? sb_manifest_walk_dir(top->dir, "", gather_dir, &d) : 0;
	for (size_t i = d.n; n == 0 && i-- > 0;) {
		sb_autoclose int sub =
			sb_path_open(fd, d.v[i].path, O_RDONLY | O_DIRECTORY, 0, err);

		n = sub < 0 ? (sub == SB_E_NOTFOUND ? 0 : sub) :
			      set_dir(sub, d.v[i].mode, d.v[i].mtime, err);
	}
	/*
	 * Without write permission on itself a directory cannot be renamed into another parent: its
	 * mode waits.
	 */
	if (n == 0)
		n = set_dir(fd, op->mode | 0700, op->mtime, err);
	dir_rows_free(&d);
	return n;
}

static int
add_dirmeta(struct sb_receive *r, const char *path, uint16_t mode, int64_t mtime,
	struct sb_error *err)
{
	struct sb_op *op = sb_journal_add(&r->ops, SB_OP_DIRMETA, path, NULL, err);

	if (!op)
		return SB_E_NOMEM;
	op->type = SB_ENTRY_DIR;
	op->mode = mode;
	op->mtime = mtime;
	return 0;
}

/* The parents whose times the operations disturb, without duplicates. */
static int
gather_parents(struct sb_receive *r, struct sb_strlist *out, struct sb_error *err)
{
	size_t ops = r->ops.n, kept = 0;

	for (size_t i = 0; i < ops; i++) {
		const struct sb_op *op = &r->ops.v[i];
		const char *paths[2] = { op->path, op->kind == SB_OP_MOVE ? op->from : NULL };

		if (op->kind == SB_OP_META)
			continue;
		for (int k = 0; k < 2 && paths[k]; k++) {
			const char *slash = strrchr(paths[k], '/');
			size_t len = slash ? (size_t)(slash - paths[k]) : 0;

			if (out->n && strlen(out->v[out->n - 1]) == len &&
				memcmp(out->v[out->n - 1], paths[k], len) == 0)
				continue;
			sb_strlist_addf(out, "%.*s", (int)len, paths[k]);
		}
	}
	if (out->failed || !out->n)
		return sb_strlist_check(out, err);
	qsort(out->v, out->n, sizeof *out->v, by_text);
	for (size_t i = 1; i < out->n; i++) {
		if (strcmp(out->v[kept], out->v[i]) == 0) {
			free(out->v[i]);
			out->v[i] = NULL;
			continue;
		}
		out->v[++kept] = out->v[i];
		if (kept != i)
			out->v[i] = NULL;
	}
	out->n = kept + 1;
	return 0;
}

/* DIRMETA for every directory that is changed by the plan or disturbed by the commit. */
static int
plan_dirmeta(struct sb_receive *r, const struct staged_trees *t, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist parents = { 0 };
	struct dir_rows d = { .err = err, .marked_only = true };
	bool root = false;
	int n = gather_parents(r, &parents, err);

	for (size_t i = 0; n == 0 && i < parents.n; i++) {
		const char *p = parents.v[i];
		const struct sb_entry *e = sb_manifest_find(r->added, p);

		if (!*p) {
			root = true;
			continue;
		}
		if (e && (e->flags & SB_ENTRY_MARK))
			continue; /* below */
		e = sb_manifest_find(r->rep->scan.manifest, p);
		if (e && e->type == SB_ENTRY_DIR)
			n = add_dirmeta(r, p, e->mode, e->mtime, err);
	}
	/*
	 * Marked ones: changed by the plan, or new. New ones inside a staged tree are dressed there
	 * unless disturbed.
	 */
	if (n == 0)
		n = sb_manifest_walk(r->added, gather_dir, &d);
	for (size_t i = 0; n == 0 && i < d.n; i++) {
		const struct sb_entry *now = sb_manifest_find(r->rep->scan.manifest, d.v[i].path);

		n = sb_work_alive(err);
		if (n == 0 && ((now && now->type == SB_ENTRY_DIR) || dressed_last(t, d.v[i].path)))
			n = add_dirmeta(r, d.v[i].path, d.v[i].mode, d.v[i].mtime, err);
	}
	dir_rows_free(&d);
	if (n == 0 && (root || r->set_root)) {
		struct stat st;

		if (fstat(r->rep->rootfd, &st) < 0)
			return sb_fail_errno(err, "look at the root");
		/* A root that was made for this sync has no time of its own to keep. */
		if (!r->set_root && !r->rep->scan.manifest->root.mtime)
			return 0;
		n = add_dirmeta(r, "", r->set_root ? r->root_mode : st.st_mode & 07777,
			r->set_root ? r->root_mtime : r->rep->scan.manifest->root.mtime, err);
	}
	return n;
}

/*
 * The inode a hard link must lead to; 0 where it is known only at the commit (the leader is moved
 * there).
 */
static uint64_t
leader_inode(struct sb_receive *r, const char *leader)
{
	const struct sb_entry *e = sb_manifest_find(r->added, leader);

	if (e && (e->flags & SB_ENTRY_MARK))
		return e->ino ? sb_receive_rec(r, (uint32_t)e->ino - 1)->ino : 0;
	e = sb_manifest_find(r->rep->scan.manifest, leader);
	return e ? e->ino : 0;
}

static int
fill_inodes(struct sb_receive *r, struct sb_error *err)
{
	for (size_t i = 0; i < r->ops.n; i++) {
		struct sb_op *op = &r->ops.v[i];
		struct stat st;
		char name[16];

		if (op->kind == SB_OP_FILE) {
			op->new_ino = sb_receive_rec(r, op->rec - 1)->ino;
		} else if (op->kind == SB_OP_TREE) {
			if (fstatat(r->stage->newfd, sb_stage_name('t', op->stage, name), &st,
				    AT_SYMLINK_NOFOLLOW) < 0)
				return sb_fail_errno(err, "look at staged %s", name);
			op->new_ino = st.st_ino;
		} else if (op->kind == SB_OP_LINK) {
			op->new_ino = leader_inode(r, op->from);
		}
	}
	return 0;
}

struct merge_arg {
	struct sb_receive *r;
	struct sb_manifest *into;
	int64_t now; /* ns */
	struct sb_error *err;
};

/* One put entry becomes part of the replica's manifest, with what the staging learned about it. */
static int
merge_entry(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct merge_arg *a = arg;
	struct sb_entry c = *e, *put;

	(void)len;
	if (!(e->flags & SB_ENTRY_MARK))
		return 0;
	c.flags = 0;
	c.link = 0;
	if (e->type != SB_ENTRY_DIR && e->ino) {
		const struct sb_receive_rec *rec = sb_receive_rec(a->r, (uint32_t)e->ino - 1);

		c.digest = rec->got;
		c.ino = rec->ino;
		/* Other names of it may have come or gone after this one. */
		c.ctime = e->link ? 0 : rec->ctime;
		/*
		 * Whoever writes to it from now on moves its mtime, unless that is of this very
		 * moment.
		 */
		c.flags = e->mtime > a->now - 2000000000 ? SB_ENTRY_RACY : 0;
	}
	put = sb_manifest_put(a->into, path, &c,
		e->type == SB_ENTRY_LINK ? sb_entry_target(e) : NULL, a->err);
	if (!put)
		return SB_E_NOMEM;
	put->flags = c.flags;
	if (e->link)
		return sb_manifest_set_link(a->into, put, a->r->added->leaders[e->link - 1],
			a->err);
	return 0;
}

/* The same where the entry is to stay, the root having been empty. */
static int
settle_entry(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct merge_arg *a = arg;
	const struct sb_receive_rec *rec;
	bool have = e->type != SB_ENTRY_DIR && e->ino;

	(void)path;
	(void)len;
	e->flags = 0;
	if (have) {
		rec = sb_receive_rec(a->r, (uint32_t)e->ino - 1);
		e->digest = rec->got;
		e->ctime = rec->ctime;
		e->ino = rec->ino;
		e->flags = e->mtime > a->now - 2000000000 ? SB_ENTRY_RACY : 0;
	}
	return 0;
}

/* Into an empty root: what was added is all there is. A million entries are not held twice. */
static int
replace_manifest(struct merge_arg *a)
{
	struct sb_manifest *old = a->into, *m = a->r->added;
	struct sb_dir *dir = m->root.dir;

	dir->dev = old->root.dir->dev;
	m->root = old->root;
	m->root.dir = dir;
	a->r->rep->scan.manifest = m;
	a->r->added = NULL;
	sb_manifest_free(old);
	a->into = m;
	return sb_manifest_walk(m, settle_entry, a);
}

/* The replica's manifest as it is after the commit. */
static int
update_manifest(struct sb_receive *r, struct sb_commit_result *res, struct sb_error *err)
{
	struct sb_manifest *m = r->rep->scan.manifest;
	struct timespec now;
	struct merge_arg a = { .r = r, .into = m, .err = err };
	int n;

	clock_gettime(CLOCK_REALTIME, &now);
	a.now = sb_ns_from(now);
	n = sb_receive_links_forget(&r->ops, m, err);
	if (n < 0)
		return n;
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct sb_op *op = &r->ops.v[i];

		if (op->failed) {
			(void)sb_manifest_remove(r->added, op->path);
			continue;
		}
		if (op->kind == SB_OP_DEL || op->kind == SB_OP_MOVE)
			(void)sb_manifest_remove(m, op->kind == SB_OP_DEL ? op->path : op->from);
		if (op->rec && op->new_ctime) {
			struct sb_receive_rec *rec = sb_receive_rec(r, op->rec - 1);

			rec->ino = op->new_ino;
			rec->ctime = op->new_ctime;
		}
	}
	n = m->count || m->root.dir->n ? sb_manifest_walk(r->added, merge_entry, &a) :
					 replace_manifest(&a);
	if (n == 0)
		n = sb_manifest_finish(a.into, err);
	res->id = a.into->id;
	return n;
}

/* The operations of the commit are complete: what is staged is as it shall be. */
static int
dress(struct sb_receive *r, struct sb_error *err)
{
	struct staged_trees t = { 0 };
	size_t ops = r->ops.n;
	int n = trees_find(r, &t, err);

	for (size_t i = 0; n == 0 && i < ops; i++) {
		n = sb_work_alive(err);
		if (n == 0 && r->ops.v[i].kind == SB_OP_TREE && !more_to_come(&t, r->ops.v[i].path))
			n = dress_tree(r, &r->ops.v[i], err);
	}
	if (n == 0)
		n = fill_inodes(r, err);
	if (n == 0)
		n = plan_dirmeta(r, &t, err);
	trees_free(&t);
	return n;
}

int
sb_receive_commit(struct sb_receive *r, enum sb_durability durability, struct sb_commit_result *res,
	struct sb_error *err)
{
	const struct sb_cancel *under;
	int n;

	if (r->items.n)
		return sb_fail(err, SB_E_STATE, "%zu files are still missing", r->items.n);
	n = sb_receive_drain(r, err);
	if (n == 0)
		n = drop_lost(r, res, err);
	if (n < 0)
		return n;
	drop_moved(r);
	n = drop_full_dirs(r, res, err);
	if (n == 0)
		n = dress(r, err);
	if (n == 0)
		n = sb_commit_run(r->rep->rootfd, r->stage->fd, &r->ops, durability, &r->rep->log,
			res, err);
	if (n < 0)
		return n;
	res->files += r->tree_files;
	res->dirs += r->tree_dirs > res->dirs ? r->tree_dirs - res->dirs : 0;
	res->bytes += r->pool.written_bytes;
	/* It is done and visible: what is known about it has to be kept, canceled or not. */
	under = sb_work_under(NULL);
	n = update_manifest(r, res, err);
	(void)sb_work_under(under);
	return n;
}

void
sb_receive_update_cache(struct sb_replica *rep, const struct sb_commit_result *res)
{
	/* A move changes the ctime of all that moved, and nobody counted that. */
	if (res->moved)
		sb_replica_save_cache(rep, rep->scan.manifest);
	else
		sb_replica_update_cache(rep, res->files + rep->scan.hashed_files,
			res->bytes + rep->scan.hashed_bytes);
}
