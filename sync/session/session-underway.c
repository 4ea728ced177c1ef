/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-underway.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cursor.h>
#include <base/file.h>
#include <sync/tree/diff.h>
#include <sync/tree/digest.h>

/*
 * The file, rootN.underway: 8 bytes "SBWAY01\n", two byte strings (diffs: brought here, brought
 * there), 16 bytes XXH3-128 of all before. Each entry is as its own side had it.
 */
#define MAGIC "SBWAY01\n"
#define UNDERWAY_MAX (1u << 30)

static char *
name_of(size_t pair, char buf[40])
{
	(void)snprintf(buf, 40, "root%zu.underway", pair);
	return buf;
}

/*
 * Of `d` what leads to the state that `from` has at that path. A version that goes beside a file
 * does not: no side had it there.
 */
static int
select_from(const struct sb_diff *d, const struct sb_manifest *from, struct sb_diff *out,
	struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->n; i++) {
		const struct sb_change *c = &d->v[i];
		const struct sb_entry *e = sb_manifest_find(from, c->path);

		if (c->del) {
			bool replaced = i + 1 < d->n && strcmp(d->v[i + 1].path, c->path) == 0;

			if (e ? replaced && sb_entry_same_content(e, &d->v[i + 1].entry) :
				!replaced)
				r = sb_diff_add(out, c->path, true, NULL, NULL, NULL, err);
		} else if (e && sb_entry_same_content(e, &c->entry)) {
			r = sb_diff_add(out, c->path, false, e,
				e->type == SB_ENTRY_LINK ? sb_entry_target(e) : NULL,
				e->link ? from->leaders[e->link - 1] : NULL, err);
		}
	}
	return r;
}

static int
write_record(int dirfd, const char *name, const struct sb_buf *b, bool durable,
	struct sb_error *err)
{
	sb_autoclose int fd = -1;
	char tmp[48];
	int r;

	if (durable)
		return sb_file_replace(dirfd, name, b->data, b->len, 0600, err);
	(void)snprintf(tmp, sizeof tmp, "%s.tmp", name);
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return sb_fail_errno(err, "make %s", tmp);
	r = sb_file_write_all(fd, b->data, b->len, err);
	if (r == 0 && renameat(dirfd, tmp, dirfd, name) < 0)
		r = sb_fail_errno(err, "rename %s", tmp);
	if (r < 0)
		(void)unlinkat(dirfd, tmp, 0);
	return r;
}

int
sb_session_underway_encode(const struct sb_reconciled *rec, const struct sb_manifest *local,
	const struct sb_manifest *far, struct sb_buf *out, struct sb_error *err)
{
	const struct sb_diff *all[2] = { &rec->local, &rec->runtime };
	const struct sb_manifest *from[2] = { far, local };
	struct sb_digest sum;
	int r = 0;

	if (!rec->local.n && !rec->runtime.n)
		return 0;
	sb_buf_init(out, UNDERWAY_MAX);
	sb_buf_add(out, MAGIC, 8);
	for (int i = 0; r == 0 && i < 2; i++) {
		sb_auto(sb_diff) struct sb_diff some = { 0 };
		sb_auto(sb_buf) struct sb_buf enc = { 0 };

		sb_buf_init(&enc, UNDERWAY_MAX);
		r = select_from(all[i], from[i], &some, err);
		if (r == 0)
			r = sb_diff_encode(&some, &enc, err);
		if (r == 0)
			sb_buf_add_bytes(out, enc.data, enc.len);
	}
	if (r == 0)
		r = sb_buf_check(out, "record of the sync", err);
	if (r < 0)
		return r;
	sum = sb_digest_of(out->data, out->len);
	sb_buf_add(out, sum.b, 16);
	return sb_buf_check(out, "record of the sync", err);
}

int
sb_session_underway_begin(int dirfd, size_t pair, const struct sb_buf *record, bool durable,
	struct sb_error *err)
{
	char name[40];

	return record->len ? write_record(dirfd, name_of(pair, name), record, durable, err) : 0;
}

void
sb_session_underway_end(int dirfd, size_t pair)
{
	char name[40];

	(void)unlinkat(dirfd, name_of(pair, name), 0);
}

/* Does `e` hang on a directory of the base? Without one there is nothing to record it in. */
static bool
has_parent(const struct sb_manifest *base, const char *path)
{
	const char *slash = strrchr(path, '/');
	sb_autofree char *dir = slash ? strndup(path, (size_t)(slash - path)) : NULL;
	const struct sb_entry *p = dir ? sb_manifest_find(base, dir) : NULL;

	return !slash || (p && p->type == SB_ENTRY_DIR);
}

/* One path that arrived: the base gets what the side it came from had. */
static int
record_put(struct sb_manifest *base, const struct sb_change *c, const struct sb_entry *now,
	uint16_t mask, struct sb_error *err)
{
	const struct sb_entry *old = sb_manifest_find(base, c->path);
	struct sb_entry e = c->entry, *put;

	if (!has_parent(base, c->path))
		return 0;
	/* The mode counts by itself: whoever changed it since did that alone. */
	if (e.type != SB_ENTRY_LINK && ((e.mode ^ now->mode) & mask) && old && old->type == e.type)
		e.mode = old->mode;
	/* A time alone that has not come yet is still to come. */
	if (e.mtime != now->mtime && old && sb_entry_same_content(old, &e))
		e.mtime = old->mtime;
	if (old && (old->type == SB_ENTRY_DIR) != (e.type == SB_ENTRY_DIR))
		(void)sb_manifest_remove(base, c->path);
	e.ino = 0;
	e.ctime = 0;
	e.flags = 0;
	put = sb_manifest_put(base, c->path, &e, c->target, err);
	if (!put)
		return SB_E_NOMEM;
	return c->leader ? sb_manifest_set_link(base, put, c->leader, err) : 0;
}

/* Records what of `d` the tree `to` has: 1 when anything changed. */
static int
fold(struct sb_manifest *base, const struct sb_diff *d, const struct sb_manifest *to, uint16_t mask,
	struct sb_error *err)
{
	int r = 0, changed = 0;

	for (size_t i = 0; r == 0 && i < d->n; i++) {
		const struct sb_change *c = &d->v[i];
		const struct sb_entry *now = sb_manifest_find(to, c->path);

		if (c->del && !now) {
			changed |= sb_manifest_remove(base, c->path);
		} else if (!c->del && now && sb_entry_same_content(now, &c->entry)) {
			r = record_put(base, c, now, mask, err);
			changed = 1;
		}
	}
	if (r == 0 && changed)
		r = sb_manifest_finish(base, err);
	return r < 0 ? r : changed;
}

static int
read_record(int dirfd, size_t pair, struct sb_diff d[2])
{
	static const struct sb_manifest_limits limits = SB_MANIFEST_LIMITS_INIT;
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_digest sum;
	struct sb_cursor c;
	char name[40];
	int r = sb_file_read(dirfd, name_of(pair, name), UNDERWAY_MAX, &b, NULL);

	if (r < 0)
		return r;
	if (b.len < 8 + 16 || memcmp(b.data, MAGIC, 8) != 0)
		return SB_E_CORRUPT;
	sum = sb_digest_of(b.data, b.len - 16);
	if (memcmp(sum.b, b.data + b.len - 16, 16) != 0)
		return SB_E_CORRUPT;
	sb_cursor_init(&c, b.data + 8, b.len - 8 - 16);
	for (int i = 0; r == 0 && i < 2; i++) {
		size_t n;
		const uint8_t *p = sb_cursor_bytes(&c, b.len, &n);

		r = c.bad ? SB_E_CORRUPT : sb_diff_decode(p, n, &limits, &d[i], NULL);
	}
	return r;
}

int
sb_session_underway_fold(int dirfd, size_t pair, struct sb_manifest *base,
	const struct sb_manifest *local, const struct sb_manifest *far, uint16_t mode_mask,
	struct sb_error *err)
{
	struct sb_diff d[2] = { { 0 }, { 0 } };
	int r = read_record(dirfd, pair, d), changed = 0;

	if (r == 0)
		r = fold(base, &d[0], local, mode_mask, err);
	changed = r > 0;
	if (r >= 0)
		r = fold(base, &d[1], far, mode_mask, err);
	changed |= r > 0;
	sb_diff_free(&d[0]);
	sb_diff_free(&d[1]);
	return r == SB_E_NOMEM ? r : changed;
}

int
sb_session_underway_pulled(struct sb_manifest *base, const struct sb_diff *done,
	const struct sb_manifest *local, const struct sb_manifest *far, uint16_t mode_mask,
	struct sb_error *err)
{
	sb_auto(sb_diff) struct sb_diff some = { 0 };
	int r = select_from(done, far, &some, err);

	return r < 0 ? r : fold(base, &some, local, mode_mask, err);
}
