/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-brake.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/cursor.h>
#include <base/file.h>
#include <base/work.h>

#define MAGIC "SBMARK1\n"
#define HEAD 24
#define ROW 16
#define MARK_MAX (1u << 30)
#define FEW_DELETED 10
#define FEW_TOUCHED 50

struct brake_count {
	struct sb_buf mark, more; /* the files; empty: none */
	const struct sb_manifest *local;
	struct sb_digest *kept; /* contents that the sync puts somewhere, sorted */
	size_t n_kept;
	bool deletes;
	struct sb_session_brake *out;
};

static const char *
mark_name(size_t pair, bool more, char *buf, size_t size)
{
	(void)snprintf(buf, size, "root%zu.mark%s", pair, more ? "-more" : "");
	return buf;
}

static void
row_of(const char *path, const struct sb_entry *e, uint8_t row[ROW])
{
	struct sb_digest d = sb_digest_of(path, strlen(path));

	memcpy(row, d.b, 8);
	memcpy(row + 8, e->digest.b, 8);
}

static int
by_row(const void *a, const void *b)
{
	return memcmp(a, b, ROW);
}

static int
by_digest(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct sb_digest));
}

static bool
is_marked(const struct brake_count *c, const char *path, const struct sb_entry *e)
{
	uint8_t row[ROW];

	if (c->mark.len < HEAD)
		return true;
	row_of(path, e, row);
	return bsearch(row, c->mark.data + HEAD, (c->mark.len - HEAD) / ROW, ROW, by_row) ||
		(c->more.len && bsearch(row, c->more.data, c->more.len / ROW, ROW, by_row));
}

/* One entry that goes, or is replaced. */
static int
count_entry(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct brake_count *c = arg;

	(void)len;
	if (e->type == SB_ENTRY_DIR ||
		(c->n_kept && bsearch(&e->digest, c->kept, c->n_kept, sizeof *c->kept, by_digest)))
		return 0;
	c->out->gone += c->deletes;
	if (!is_marked(c, path, e))
		return 0;
	if (c->deletes)
		c->out->deleted++;
	else
		c->out->overwritten++;
	return 0;
}

static int
count_changes(struct brake_count *c, const struct sb_diff *d, struct sb_error *err)
{
	int r = 0;

	c->kept = calloc(d->n + 1, sizeof *c->kept);
	if (!c->kept)
		return sb_fail(err, SB_E_NOMEM, "brake: out of memory");
	for (size_t i = 0; i < d->n; i++)
		if (!d->v[i].del && d->v[i].entry.type != SB_ENTRY_DIR)
			c->kept[c->n_kept++] = d->v[i].entry.digest;
	if (c->n_kept)
		qsort(c->kept, c->n_kept, sizeof *c->kept, by_digest);
	for (size_t i = 0; r == 0 && i < d->n; i++) {
		const struct sb_change *ch = &d->v[i];
		struct sb_entry *old = sb_manifest_find(c->local, ch->path);

		r = sb_work_alive(err);
		if (!old || r < 0)
			continue;
		c->deletes = ch->del;
		if (ch->del && old->type == SB_ENTRY_DIR)
			r = sb_manifest_walk_dir(old->dir, ch->path, count_entry, c);
		else if (ch->del ||
			(old->type != SB_ENTRY_DIR && !sb_entry_same_content(old, &ch->entry)))
			r = count_entry(ch->path, 0, old, c);
	}
	free(c->kept);
	return r;
}

static int
count_file(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	(void)path;
	(void)len;
	*(uint64_t *)arg += e->type != SB_ENTRY_DIR;
	return 0;
}

static void
load_mark(int dirfd, size_t pair, struct brake_count *c)
{
	struct sb_session_brake *o = c->out;
	struct sb_cursor cur;
	char name[40];

	if (sb_file_read(dirfd, mark_name(pair, false, name, sizeof name), MARK_MAX, &c->mark,
		    NULL) < 0 ||
		c->mark.len < HEAD || (c->mark.len - HEAD) % ROW ||
		memcmp(c->mark.data, MAGIC, 8) != 0) {
		sb_buf_free(&c->mark);
		o->marked = o->files;
		return;
	}
	if (sb_file_read(dirfd, mark_name(pair, true, name, sizeof name), MARK_MAX, &c->more,
		    NULL) < 0)
		sb_buf_free(&c->more);
	c->more.len -= c->more.len % ROW;
	if (c->more.len)
		qsort(c->more.data, c->more.len / ROW, ROW, by_row);
	sb_cursor_init(&cur, c->mark.data + 8, 16);
	o->all_deleted = sb_cursor_u64(&cur);
	o->all_overwritten = sb_cursor_u64(&cur);
	o->marked = (c->mark.len - HEAD + c->more.len) / ROW;
}

static uint64_t
half(uint64_t n, uint64_t few)
{
	return n / 2 > few ? n / 2 : few;
}

int
sb_session_brake_check(int dirfd, size_t pair, const struct sb_manifest *local,
	const struct sb_diff *d, int64_t max_delete, const char *where,
	struct sb_session_brake *out, struct sb_error *err)
{
	struct brake_count c = { .local = local, .out = out };
	uint64_t touched;
	bool deletes, both;
	int r;

	memset(out, 0, sizeof *out);
	r = sb_manifest_walk(local, count_file, &out->files);
	if (r == 0)
		load_mark(dirfd, pair, &c);
	if (r == 0)
		r = count_changes(&c, d, err);
	sb_buf_free(&c.mark);
	sb_buf_free(&c.more);
	if (r < 0)
		return r;
	out->all_deleted += out->deleted;
	out->all_overwritten += out->overwritten;
	touched = out->all_deleted + out->all_overwritten;
	deletes = out->deleted &&
		(out->all_deleted > half(out->marked, FEW_DELETED) ||
			(out->gone >= out->files && out->files > 1));
	both = (out->deleted || out->overwritten) && touched > half(out->marked, FEW_TOUCHED);
	out->lifted = (deletes || both) && max_delete >= 0 &&
		out->deleted + out->overwritten <= (uint64_t)max_delete;
	if ((!deletes && !both) || out->lifted)
		return 0;
	return sb_fail(err, SB_E_BRAKE,
		"this would delete %llu of %llu files of yours in %s and overwrite %llu, with "
		"earlier syncs of this session %llu and %llu; nothing was changed; to go on: "
		"--max-delete %llu",
		(unsigned long long)out->deleted, (unsigned long long)out->marked, where,
		(unsigned long long)out->overwritten, (unsigned long long)out->all_deleted,
		(unsigned long long)out->all_overwritten,
		(unsigned long long)(out->deleted + out->overwritten));
}

void
sb_session_brake_brought(int dirfd, size_t pair, const struct sb_diff *d)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	sb_autoclose int fd = -1;
	char name[40];

	sb_buf_init(&b, MARK_MAX);
	for (size_t i = 0; i < d->n; i++) {
		uint8_t row[ROW];

		if (d->v[i].del || d->v[i].entry.type == SB_ENTRY_DIR)
			continue;
		row_of(d->v[i].path, &d->v[i].entry, row);
		sb_buf_add(&b, row, ROW);
	}
	if (!b.len || b.failed)
		return;
	fd = openat(dirfd, mark_name(pair, true, name, sizeof name),
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		(void)sb_file_write_all(fd, b.data, b.len, NULL);
}

struct mark_rows {
	uint8_t *v;
	size_t n;
};

static int
add_row(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct mark_rows *m = arg;

	(void)len;
	if (e->type != SB_ENTRY_DIR)
		row_of(path, e, m->v + ROW * m->n++);
	return 0;
}

/* Counting begins with the tree as it is. */
static void
begin_anew(int dirfd, size_t pair, const char *name, const struct sb_manifest *local)
{
	char more[40];
	struct mark_rows m = { .v = malloc(ROW * (local->count + 1)) };
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	if (!m.v)
		return;
	(void)sb_manifest_walk(local, add_row, &m);
	if (m.n)
		qsort(m.v, m.n, ROW, by_row);
	sb_buf_init(&b, MARK_MAX);
	sb_buf_add(&b, MAGIC, 8);
	sb_buf_add_u64(&b, 0);
	sb_buf_add_u64(&b, 0);
	sb_buf_add(&b, m.v, ROW * m.n);
	free(m.v);
	if (!b.failed && sb_file_replace(dirfd, name, b.data, b.len, 0600, NULL) == 0)
		(void)unlinkat(dirfd, mark_name(pair, true, more, sizeof more), 0);
}

void
sb_session_brake_made(int dirfd, size_t pair, const struct sb_manifest *local,
	const struct sb_session_brake *b)
{
	sb_auto(sb_buf) struct sb_buf f = { 0 }, head = { 0 };
	char name[40];

	(void)mark_name(pair, false, name, sizeof name);
	if (b && !b->deleted && !b->overwritten)
		return;
	if (!b || b->lifted || sb_file_read(dirfd, name, MARK_MAX, &f, NULL) < 0 || f.len < HEAD) {
		begin_anew(dirfd, pair, name, local);
		return;
	}
	sb_buf_init(&head, HEAD);
	sb_buf_add(&head, MAGIC, 8);
	sb_buf_add_u64(&head, b->all_deleted);
	sb_buf_add_u64(&head, b->all_overwritten);
	if (head.failed)
		return;
	memcpy(f.data, head.data, HEAD);
	(void)sb_file_replace(dirfd, name, f.data, f.len, 0600, NULL);
}
