/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/receive-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/path.h>
#include <base/str.h>
#include <base/work.h>
#include <sync/tree/nstime.h>
#include <sync/tree/stage-names.h>
#include <sync/tree/diff.h>
#include <sync/replica/stage.h>

struct sb_receive_rec *
sb_receive_rec(struct sb_receive *r, uint32_t n)
{
	return &r->recs[n / REC_BLOCK][n % REC_BLOCK];
}

static int
new_rec(struct sb_receive *r, const struct sb_digest *want, uint32_t *out, struct sb_error *err)
{
	if (r->n_recs % REC_BLOCK == 0) {
		struct sb_receive_rec **v = realloc(r->recs,
			(r->n_recs / REC_BLOCK + 1) * sizeof(struct sb_receive_rec *));

		if (v)
			r->recs = v;
		if (!v ||
			!(v[r->n_recs / REC_BLOCK] =
					calloc(REC_BLOCK, sizeof(struct sb_receive_rec))))
			return sb_fail(err, SB_E_NOMEM, "stage: out of memory");
	}
	*out = r->n_recs++;
	sb_receive_rec(r, *out)->want = *want;
	return 0;
}

int
sb_receive_items_add(struct sb_receive_items *l, const struct sb_receive_item *it,
	struct sb_error *err)
{
	/* What has both its data and its row is done with: make room from the front. */
	size_t done = l->data_at < l->row_at ? l->data_at : l->row_at;

	if (l->n == l->cap && done > l->n / 2) {
		for (size_t i = 0; i < done; i++) {
			free(l->v[i].path);
			free(l->v[i].staged);
		}
		memmove(l->v, l->v + done, (l->n - done) * sizeof *l->v);
		l->n -= done;
		l->data_at -= done;
		l->row_at -= done;
	}
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 1024;
		struct sb_receive_item *v = realloc(l->v, cap * sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "stage: out of memory");
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n++] = *it;
	return 0;
}

void
sb_receive_items_free(struct sb_receive_items *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].staged);
	}
	free(l->v);
	memset(l, 0, sizeof *l);
}

struct sb_receive *
sb_receive_new(struct sb_replica *rep, struct sb_stage *stage, const struct sb_receive_opts *opts,
	struct sb_error *err)
{
	sb_auto(sb_receive) struct sb_receive *r = calloc(1, sizeof *r);

	if (!r) {
		sb_stage_free(stage);
		sb_fail(err, SB_E_NOMEM, "receive: out of memory");
		return NULL;
	}
	r->rep = rep;
	r->stage = stage;
	r->o = *opts;
	r->ops.refresh = true;
	r->added = sb_manifest_new(err);
	if (!r->added || sb_replica_make_root(rep, err) < 0 ||
		sb_stage_begin(rep->rootfd, stage, err) < 0 ||
		sb_receive_pool_start(r, opts->jobs, err) < 0)
		return NULL;
	return sb_steal(&r);
}

void
sb_receive_free(struct sb_receive *r)
{
	if (!r)
		return;
	if (r->pool.made) {
		sb_receive_pool_stop(r);
		for (size_t i = 0; i < DIRH_MAX; i++)
			if (r->dirs[i])
				sb_receive_dir_put(r, r->dirs[i]);
		pthread_cond_destroy(&r->pool.more);
		pthread_cond_destroy(&r->pool.less);
		pthread_mutex_destroy(&r->pool.mu);
	}
	sb_unpack_free(r->unpack);
	sb_receive_items_free(&r->items);
	sb_receive_items_free(&r->risky);
	sb_strlist_free(&r->deleted);
	sb_strlist_free(&r->moved_from);
	sb_strlist_free(&r->dropped);
	sb_strlist_free(&r->dropped_staged);
	for (uint32_t i = 0; i * REC_BLOCK < r->n_recs; i++)
		free(r->recs[i]);
	free(r->recs);
	sb_journal_free(&r->ops);
	sb_manifest_free(r->added);
	sb_stage_free(r->stage);
	free(r->tree);
	free(r->last_parent);
	free(r->last_path);
	free(r);
}

/* Makes the directories above `path` in `added`, unmarked, as the root has them. */
static int
ensure_parents(struct sb_receive *r, const char *path, struct sb_error *err)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	sb_autofree char *dir = NULL;

	if (!len ||
		(r->last_parent && strncmp(r->last_parent, path, len) == 0 && !r->last_parent[len]))
		return 0;
	dir = strndup(path, len);
	if (!dir)
		return sb_fail(err, SB_E_NOMEM, "receive: out of memory");
	for (char *p = dir;; *p++ = '/') {
		const struct sb_entry *have, *now;

		p = strchrnul(p, '/');
		len = *p ? 1 : 0;
		*p = 0;
		have = sb_manifest_find(r->added, dir);
		if (have && have->type != SB_ENTRY_DIR)
			return sb_fail(err, SB_E_PROTO,
				"the plan puts something into %s, which is no directory", dir);
		if (!have) {
			now = sb_manifest_find(r->rep->scan.manifest, dir);
			if (!now || now->type != SB_ENTRY_DIR)
				return sb_fail(err, SB_E_PROTO, "the plan has no directory for %s",
					path);
			if (!sb_manifest_put(r->added, dir, now, NULL, err))
				return SB_E_NOMEM;
			sb_manifest_find(r->added, dir)->flags = 0;
		}
		if (!len)
			break;
	}
	free(r->last_parent);
	r->last_parent = sb_steal(&dir);
	return 0;
}

/*
 * The mode that is set. Of the bits that are not taken from the other side, those that are here
 * stay: write permission for others, and what a directory hands on to what is made in it. Set-id
 * bits of a file go with its old content.
 */
static uint16_t
taken_mode(const struct sb_receive *r, const struct sb_change *ch)
{
	uint16_t mask = r->o.mode_mask, keep = ch->entry.type == SB_ENTRY_DIR ? 03022 : 0022;
	const struct sb_entry *e = (mask & keep) == keep || ch->entry.type == SB_ENTRY_LINK ?
		NULL :
		sb_manifest_find(r->rep->scan.manifest, ch->path);

	return (uint16_t)((ch->entry.mode & mask) |
		(e && e->type == ch->entry.type ? e->mode & keep & ~mask : 0));
}

/* Records the entry in `added`; `rec` is 1 + the record of its staged file, or 0. */
static int
record(struct sb_receive *r, const struct sb_change *ch, uint32_t rec, struct sb_error *err)
{
	struct sb_entry e = ch->entry, *put;
	int n = ensure_parents(r, ch->path, err);

	if (n < 0)
		return n;
	if (e.type != SB_ENTRY_LINK)
		e.mode = taken_mode(r, ch);
	e.ino = rec;
	e.ctime = 0;
	e.link = 0;
	e.flags = SB_ENTRY_MARK;
	put = sb_manifest_put(r->added, ch->path, &e, ch->target, err);
	if (!put)
		return SB_E_NOMEM;
	put->flags = SB_ENTRY_MARK;
	if (ch->leader)
		return sb_manifest_set_link(r->added, put, ch->leader, err);
	return 0;
}

static bool
in_tree(const struct sb_receive *r, const char *path)
{
	return r->tree && strncmp(path, r->tree, r->tree_len) == 0 && path[r->tree_len] == '/';
}

/*
 * Where `path` is staged, beneath "new": inside the current new directory, or under a number of its
 * own.
 */
static char *
staged_path(struct sb_receive *r, const char *path, char kind, uint32_t *no, struct sb_error *err)
{
	char name[16], *s = NULL;

	if (in_tree(r, path)) {
		s = sb_str_printf("%s%s", sb_stage_name('t', r->tree_no, name), path + r->tree_len);
	} else {
		*no = r->next_stage++;
		s = strdup(sb_stage_name(kind, *no, name));
	}
	if (!s)
		sb_fail(err, SB_E_NOMEM, "receive: out of memory");
	return s;
}

/* The operation that puts a staged thing in place; none inside a new directory. */
static int
add_op(struct sb_receive *r, const struct sb_change *ch, enum sb_op_kind kind, const char *from,
	uint32_t no, const struct sb_entry *old, uint32_t rec, struct sb_error *err)
{
	struct sb_op *op;

	if (in_tree(r, ch->path))
		return 0;
	op = sb_journal_add(&r->ops, kind, ch->path, from, err);
	if (!op)
		return SB_E_NOMEM;
	op->type = ch->entry.type;
	op->mode = taken_mode(r, ch);
	op->mtime = ch->entry.mtime;
	op->stage = no;
	op->rec = rec;
	if (old)
		sb_journal_seen_from(&op->old, old);
	return 0;
}

static int
plan_dir(struct sb_receive *r, const struct sb_change *ch, const struct sb_entry *old,
	struct sb_error *err)
{
	sb_autofree char *staged = NULL;
	const char *leaf;
	struct sb_receive_dir *d;
	uint32_t no = 0;
	bool inside = in_tree(r, ch->path);
	int n = record(r, ch, 0, err);

	if (n < 0 || (old && old->type == SB_ENTRY_DIR))
		return n; /* an existing one: its mode and time are set by sb_receive_commit */
	staged = staged_path(r, ch->path, 't', &no, err);
	if (!staged)
		return SB_E_NOMEM;
	d = sb_receive_dir_get(r, staged, &leaf, err);
	if (!d)
		return err ? err->code : SB_E_SYS;
	n = mkdirat(d->fd, leaf, 0700) < 0 ?
		sb_fail_errno(err, "make staged directory %s", staged) :
		0;
	sb_receive_dir_put(r, d);
	if (n < 0)
		return n;
	r->tree_dirs++;
	if (inside)
		return 0;
	n = add_op(r, ch, SB_OP_TREE, NULL, no, old, 0, err);
	free(r->tree);
	r->tree = strdup(ch->path);
	if (!r->tree)
		return sb_fail(err, SB_E_NOMEM, "receive: out of memory");
	r->tree_len = strlen(r->tree);
	r->tree_no = no;
	return n;
}

static int
plan_symlink(struct sb_receive *r, const struct sb_change *ch, const struct sb_entry *old,
	struct sb_error *err)
{
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, sb_ns_to(ch->entry.mtime) };
	struct sb_digest want = ch->entry.digest;
	sb_autofree char *staged = NULL;
	const char *leaf;
	struct stat st;
	struct sb_receive_dir *d;
	uint32_t no = 0, rec;
	int n = new_rec(r, &want, &rec, err);

	if (n == 0)
		n = record(r, ch, rec + 1, err);
	if (n < 0)
		return n;
	staged = staged_path(r, ch->path, 'f', &no, err);
	if (!staged)
		return SB_E_NOMEM;
	d = sb_receive_dir_get(r, staged, &leaf, err);
	if (!d)
		return err ? err->code : SB_E_SYS;
	if (symlinkat(ch->target, d->fd, leaf) < 0 ||
		utimensat(d->fd, leaf, ts, AT_SYMLINK_NOFOLLOW) < 0 ||
		fstatat(d->fd, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
		n = sb_fail_errno(err, "make staged symlink %s", staged);
	sb_receive_dir_put(r, d);
	if (n < 0)
		return n;
	sb_receive_rec(r, rec)->state = REC_OK;
	sb_receive_rec(r, rec)->got = want;
	sb_receive_rec(r, rec)->ino = st.st_ino;
	sb_receive_rec(r, rec)->ctime = sb_ns_from(st.st_ctim);
	if (in_tree(r, ch->path))
		r->tree_files++;
	return add_op(r, ch, SB_OP_FILE, NULL, no, old, rec + 1, err);
}

/* A leftover of an interrupted transfer takes its place; a second taker gets a copy. */
static int
take_leftover(struct sb_receive *r, const struct sb_change *ch, struct sb_receive_item *it,
	struct sb_error *err)
{
	struct sb_leftover *l = sb_stage_lookup(r->stage, &ch->entry.digest);
	sb_autofree char *full = sb_str_printf("%s/%s", SB_STAGE_NEW, it->staged);
	struct sb_receive_rec res = { .got = ch->entry.digest };
	sb_autoclose int fd = -1;
	int n;

	if (!full)
		return sb_fail(err, SB_E_NOMEM, "receive: out of memory");
	if (!l || l->size != ch->entry.size)
		return 1;
	if (strncmp(l->path, SB_STAGE_NEW "/", 4) == 0)
		return 2;
	if (renameat(r->stage->fd, l->path, r->stage->fd, full) < 0)
		return 1;
	free(l->path);
	l->path = sb_steal(&full);
	fd = sb_path_open(r->stage->fd, l->path, O_RDONLY, 0, err);
	if (fd < 0)
		return fd;
	n = sb_receive_finish_file(fd, it->mode, it->mtime, &res, err);
	if (n < 0)
		return n;
	sb_receive_judge(r, sb_receive_rec(r, it->rec), &res);
	return 0;
}

static int
queue_clone(struct sb_receive *r, const struct sb_receive_item *it, int fromfd, const char *from,
	struct sb_error *err)
{
	struct sb_receive_job j = { .kind = JOB_CLONE,
		.rec = sb_receive_rec(r, it->rec),
		.mode = it->mode,
		.mtime = it->mtime,
		.size = it->size,
		.fromfd = fromfd };
	const char *leaf;

	j.dir = sb_receive_dir_get(r, it->staged, &leaf, err);
	if (!j.dir)
		return err ? err->code : SB_E_SYS;
	j.leaf = strdup(leaf);
	j.from = strdup(from);
	if (!j.leaf || !j.from) {
		sb_receive_dir_put(r, j.dir);
		free(j.leaf);
		free(j.from);
		return sb_fail(err, SB_E_NOMEM, "receive: out of memory");
	}
	return sb_receive_pool_add(r, &j, err);
}

static int
queue_empty(struct sb_receive *r, const struct sb_receive_item *it, struct sb_error *err)
{
	struct sb_receive_job j = { .kind = JOB_WRITE,
		.rec = sb_receive_rec(r, it->rec),
		.mode = it->mode,
		.mtime = it->mtime };
	const char *leaf;

	j.dir = sb_receive_dir_get(r, it->staged, &leaf, err);
	if (!j.dir)
		return err ? err->code : SB_E_SYS;
	j.leaf = strdup(leaf);
	if (!j.leaf) {
		sb_receive_dir_put(r, j.dir);
		return sb_fail(err, SB_E_NOMEM, "receive: out of memory");
	}
	return sb_receive_pool_add(r, &j, err);
}

static void
drop_item(struct sb_receive_item *it)
{
	free(it->path);
	free(it->staged);
}

/*
 * Starts the content of a file on its way into the stage; `it` is owned by a list afterwards, or
 * freed.
 */
static int
start_content(struct sb_receive *r, const struct sb_change *ch, const struct sb_plan_step *st,
	struct sb_receive_item *it, struct sb_error *err)
{
	int n = 0;

	switch (st->method) {
	case SB_METHOD_DATA: return sb_receive_items_add(&r->items, it, err);
	case SB_METHOD_MAKE: {
		n = queue_empty(r, it, err);
		drop_item(it);
		return n;
	}
	case SB_METHOD_CLONE: {
		const struct sb_entry *src = sb_manifest_find(r->rep->scan.manifest, st->from);

		/*
		 * Only what the scan saw may be read: a peer cannot name files outside the synced
		 * set.
		 */
		if (!src || src->type != SB_ENTRY_FILE || src->size != it->size) {
			drop_item(it);
			return sb_fail(err, SB_E_PROTO,
				"the plan copies from a file that is not there");
		}
		n = sb_receive_items_add(&r->risky, it, err);
		return n < 0 ? n : queue_clone(r, it, r->rep->rootfd, st->from, err);
	}
	default:
		n = take_leftover(r, ch, it, err);
		if (n == 2) {
			struct sb_leftover *l = sb_stage_lookup(r->stage, &ch->entry.digest);

			n = sb_receive_items_add(&r->risky, it, err);
			return n < 0 ? n : queue_clone(r, it, r->stage->fd, l->path, err);
		}
		if (n < 0) {
			drop_item(it);
			return n;
		}
		if (n == 1)
			sb_receive_rec(r, it->rec)->state = REC_BAD;
		return sb_receive_items_add(&r->risky, it, err);
	}
}

static int
plan_file(struct sb_receive *r, const struct sb_change *ch, const struct sb_plan_step *st,
	const struct sb_entry *old, struct sb_error *err)
{
	struct sb_receive_item it = { .mode = taken_mode(r, ch),
		.mtime = ch->entry.mtime,
		.size = ch->entry.size };
	struct sb_digest want = ch->entry.digest;
	uint32_t no = 0;
	int n;

	if (ch->entry.size > r->o.max_bytes - r->bytes)
		return sb_fail(err, SB_E_LIMIT, "%s: more data than the limit of %llu bytes",
			ch->path, (unsigned long long)r->o.max_bytes);
	r->bytes += ch->entry.size;
	n = new_rec(r, &want, &it.rec, err);
	if (n == 0)
		n = record(r, ch, it.rec + 1, err);
	if (n < 0)
		return n;
	it.staged = staged_path(r, ch->path, 'f', &no, err);
	it.path = strdup(ch->path);
	if (!it.staged || !it.path)
		n = sb_fail(err, SB_E_NOMEM, "receive: out of memory");
	if (n == 0)
		n = add_op(r, ch, SB_OP_FILE, st->method == SB_METHOD_CLONE ? st->from : NULL, no,
			old, it.rec + 1, err);
	if (n < 0) {
		drop_item(&it);
		return n;
	}
	if (in_tree(r, ch->path))
		r->tree_files++;
	return start_content(r, ch, st, &it, err);
}

/* Mode and mtime of a file that keeps its content. */
static int
plan_meta(struct sb_receive *r, const struct sb_change *ch, const struct sb_entry *old,
	struct sb_error *err)
{
	struct sb_change kept = *ch;
	struct sb_op *op;
	uint32_t rec;
	int n;

	if (!old || old->type != ch->entry.type)
		return sb_fail(err, SB_E_PROTO,
			"the plan changes the mode of %s, which is not there", ch->path);
	kept.entry.size = old->size;
	kept.entry.digest = old->digest;
	n = new_rec(r, &old->digest, &rec, err);
	if (n == 0)
		n = record(r, &kept, rec + 1, err);
	if (n < 0)
		return n;
	sb_receive_rec(r, rec)->state = REC_OK;
	sb_receive_rec(r, rec)->got = old->digest;
	sb_receive_rec(r, rec)->ino = old->ino;
	op = sb_journal_add(&r->ops, SB_OP_META, ch->path, NULL, err);
	if (!op)
		return SB_E_NOMEM;
	op->type = old->type;
	op->mode = taken_mode(r, ch);
	op->mtime = ch->entry.mtime;
	op->rec = rec + 1;
	sb_journal_seen_from(&op->old, old);
	return 0;
}

static int
plan_link(struct sb_receive *r, const struct sb_change *ch, const struct sb_entry *old,
	struct sb_error *err)
{
	struct sb_op *op;
	uint32_t rec;
	int n = new_rec(r, &ch->entry.digest, &rec, err);

	if (n == 0)
		n = record(r, ch, rec + 1, err);
	if (n < 0)
		return n;
	sb_receive_rec(r, rec)->state = REC_OK;
	sb_receive_rec(r, rec)->got = ch->entry.digest;
	op = sb_journal_add(&r->ops, SB_OP_LINK, ch->path, ch->leader, err);
	if (!op)
		return SB_E_NOMEM;
	op->type = SB_ENTRY_FILE;
	op->stage = r->next_stage++;
	op->rec = rec + 1;
	if (old)
		sb_journal_seen_from(&op->old, old);
	return 0;
}

struct copy_arg {
	struct sb_receive *r;
	const char *from; /* the directory that moves, and where to */
	const char *to;
	struct sb_error *err;
};

/* Names of one inode stay that when their directory moves. */
static int
copy_link(const struct copy_arg *a, const struct sb_entry *e, struct sb_entry *put)
{
	const char *leader = a->r->rep->scan.manifest->leaders[e->link - 1];
	size_t n = strlen(a->from);
	bool inside = strncmp(leader, a->from, n) == 0 && leader[n] == '/';
	sb_autofree char *moved =
		inside ? sb_str_printf("%s%s", a->to, leader + n) : strdup(leader);

	if (!moved)
		return sb_fail(a->err, SB_E_NOMEM, "receive: out of memory");
	return sb_manifest_set_link(a->r->added, put, moved, a->err);
}

static int
copy_entry(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct copy_arg *a = arg;
	sb_autofree char *to = sb_str_printf("%s/%s", a->to, path);
	struct sb_entry c = *e, *put;

	(void)len;
	if (!to)
		return sb_fail(a->err, SB_E_NOMEM, "receive: out of memory");
	c.link = 0;
	put = sb_manifest_put(a->r->added, to, &c,
		e->type == SB_ENTRY_LINK ? sb_entry_target(e) : NULL, a->err);
	if (!put)
		return SB_E_NOMEM;
	put->flags = (uint8_t)(e->flags | SB_ENTRY_MARK);
	/* Its stat stays what it was: no record. */
	put->ino = 0;
	put->ctime = 0;
	return e->link ? copy_link(a, e, put) : 0;
}

static int
plan_move(struct sb_receive *r, const struct sb_change *ch, const struct sb_plan_step *st,
	const struct sb_entry *at, struct sb_error *err)
{
	const struct sb_entry *from = sb_manifest_find(r->rep->scan.manifest, st->from);
	struct sb_change c = *ch;
	struct sb_op *op;
	uint32_t rec = 0;
	int n = 0;

	/*
	 * A directory into itself would fail only once it is in the journal, and then at every
	 * recovery.
	 */
	if (!from || from->type != ch->entry.type || at ||
		(strncmp(ch->path, st->from, strlen(st->from)) == 0 &&
			ch->path[strlen(st->from)] == '/'))
		return sb_fail(err, SB_E_PROTO, "the plan moves from or to a path where it cannot");
	if (from->type == SB_ENTRY_FILE) {
		c.entry.size = from->size;
		c.entry.digest = from->digest;
		n = new_rec(r, &from->digest, &rec, err);
		if (n == 0) {
			sb_receive_rec(r, rec)->state = REC_OK;
			sb_receive_rec(r, rec)->got = from->digest;
			rec++;
		}
	}
	if (n == 0)
		n = record(r, &c, rec, err);
	if (n == 0 && from->type == SB_ENTRY_DIR) {
		struct copy_arg a = { r, st->from, ch->path, err };

		n = sb_manifest_walk_dir(from->dir, "", copy_entry, &a);
	}
	if (n < 0)
		return n;
	op = sb_journal_add(&r->ops, SB_OP_MOVE, ch->path, st->from, err);
	if (!op)
		return SB_E_NOMEM;
	op->type = ch->entry.type;
	op->mode = taken_mode(r, ch);
	op->mtime = ch->entry.mtime;
	op->rec = rec;
	sb_journal_seen_from(&op->old, from);
	sb_strlist_add(&r->moved_from, st->from);
	return sb_strlist_check(&r->moved_from, err);
}

struct del_arg {
	struct sb_receive *r;
	struct sb_error *err;
};

static int
del_entry(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct del_arg *a = arg;
	struct sb_op *op = sb_journal_add(&a->r->ops, SB_OP_DEL, path, NULL, a->err);

	(void)len;
	if (!op)
		return SB_E_NOMEM;
	op->type = e->type;
	op->stage = a->r->next_stage++;
	sb_journal_seen_from(&op->old, e);
	return 0;
}

/*
 * The whole subtree, each entry checked by itself; the entry itself stays when `replaced` by what
 * comes next.
 */
static int
plan_delete(struct sb_receive *r, const char *path, bool replaced, struct sb_error *err)
{
	struct sb_entry *old = sb_manifest_find(r->rep->scan.manifest, path);
	struct del_arg a = { r, err };
	int n;

	if (!old || !*path)
		return sb_fail(err, SB_E_PROTO, "the plan deletes %s, which is not there", path);
	sb_strlist_add(&r->deleted, path);
	n = sb_strlist_check(&r->deleted, err);
	if (n == 0 && old->type == SB_ENTRY_DIR)
		n = sb_manifest_walk_dir(old->dir, path, del_entry, &a);
	if (n == 0 && !replaced)
		n = del_entry(path, strlen(path), old, &a);
	return n;
}

static int
plan_one(struct sb_receive *r, const struct sb_plan_piece *p, size_t i, struct sb_error *err)
{
	const struct sb_change *ch = &p->diff.v[i];
	const struct sb_plan_step *st = &p->steps[i];
	const struct sb_entry *old = NULL;

	/*
	 * No scan of ours lists it, but a peer may: what it put there would be taken for our own
	 * journal.
	 */
	if (sb_stage_holds(ch->path))
		return sb_fail(err, SB_E_PROTO, "the far side lists %s, which is no part of a tree",
			SB_STAGE_NAME);
	if (ch->del) {
		bool replaced = i + 1 < p->diff.n && strcmp(p->diff.v[i + 1].path, ch->path) == 0;

		return plan_delete(r, ch->path, replaced, err);
	}
	if (r->tree && !in_tree(r, ch->path)) {
		free(r->tree);
		r->tree = NULL;
	}
	if (!r->tree)
		old = sb_manifest_find(r->rep->scan.manifest, ch->path);
	if (st->method == SB_METHOD_MOVE)
		return plan_move(r, ch, st, old, err);
	if (ch->entry.type == SB_ENTRY_DIR)
		return plan_dir(r, ch, old, err);
	if (st->method == SB_METHOD_META)
		return plan_meta(r, ch, old, err);
	if (st->method == SB_METHOD_HARDLINK)
		return plan_link(r, ch, old, err);
	if (ch->entry.type == SB_ENTRY_LINK)
		return plan_symlink(r, ch, old, err);
	return plan_file(r, ch, st, old, err);
}

int
sb_receive_plan(struct sb_receive *r, const struct sb_plan_piece *piece, struct sb_error *err)
{
	size_t count = piece->diff.n;
	char *last;

	if (!count)
		return 0;
	/*
	 * One difference in pieces: no path comes twice, or what an earlier piece made could be
	 * made anew as something else.
	 */
	if (r->last_path && sb_diff_order(r->last_path, piece->diff.v[0].path) >= 0)
		return sb_fail(err, SB_E_PROTO, "the plan comes back to %s", piece->diff.v[0].path);
	last = strdup(piece->diff.v[count - 1].path);
	if (!last)
		return sb_fail(err, SB_E_NOMEM, "receive: out of memory");
	free(r->last_path);
	r->last_path = last;
	for (size_t i = 0; i < count; i++) {
		int n = sb_work_alive(err);

		if (n == 0)
			n = plan_one(r, piece, i, err);
		if (n < 0)
			return n;
	}
	return 0;
}

void
sb_receive_root_meta(struct sb_receive *r, uint16_t mode, int64_t mtime)
{
	r->set_root = true;
	r->root_mode = mode & r->o.mode_mask;
	r->root_mtime = mtime;
}
