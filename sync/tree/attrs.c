/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/tree/attrs.h>

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <base/path.h>
#include <base/work.h>
#include <sync/tree/diff.h>

#define MAGIC "SBAT"
#define FORM 1

void
sb_attrs_free(struct sb_attrs *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->v[i].path);
		free(a->v[i].set);
	}
	free(a->v);
	memset(a, 0, sizeof *a);
}

/* Attributes of users that some program obeys, and that a sandbox must not write here. */
static bool
is_obeyed(const char *name)
{
	static const char *const prefixes[] = { "user.sbsync.", "user.overlay.",
		"user.fuseoverlayfs.", "user.containers." };

	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

bool
sb_attrs_carried(const char *name, unsigned kinds)
{
	if (strcmp(name, SB_ATTRS_ACCESS) == 0 || strcmp(name, SB_ATTRS_DEFAULT) == 0)
		return kinds & SB_ATTRS_ACL;
	return (kinds & SB_ATTRS_USER) && strncmp(name, "user.", 5) == 0 && name[5] &&
		!is_obeyed(name);
}

static int
oom(struct sb_error *err)
{
	return sb_fail(err, SB_E_NOMEM, "attributes: out of memory");
}

int
sb_attrs_add(struct sb_attrs *a, const char *path, const void *set, size_t len,
	struct sb_error *err)
{
	struct sb_attrs_row *row;

	if (a->n == a->cap) {
		size_t cap = a->cap ? a->cap * 2 : 16;
		struct sb_attrs_row *v = reallocarray(a->v, cap, sizeof *v);

		if (!v)
			return oom(err);
		a->v = v;
		a->cap = cap;
	}
	row = &a->v[a->n];
	*row = (struct sb_attrs_row){ strdup(path), malloc(len + 1), len };
	if (!row->path || !row->set) {
		free(row->path);
		free(row->set);
		return oom(err);
	}
	if (len)
		memcpy(row->set, set, len);
	a->n++;
	return 0;
}

const struct sb_attrs_row *
sb_attrs_find(const struct sb_attrs *a, const char *path)
{
	size_t lo = 0, hi = a->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int c = sb_diff_path_order(a->v[mid].path, path);

		if (c == 0)
			return &a->v[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

bool
sb_attrs_next(struct sb_cursor *c, struct sb_attr *out)
{
	size_t len;
	const uint8_t *name;

	if (!sb_cursor_left(c))
		return false;
	name = sb_cursor_bytes(c, sizeof out->name - 1, &len);
	if (!name)
		return false;
	memcpy(out->name, name, len);
	out->name[len] = 0;
	out->value = sb_cursor_bytes(c, SB_ATTRS_VALUE_MAX, &out->len);
	return !c->bad && strlen(out->name) == len;
}

int
sb_attrs_encode(const struct sb_attrs *a, struct sb_buf *out, struct sb_error *err)
{
	size_t start = out->len;

	sb_buf_add(out, MAGIC, 4);
	sb_buf_add_u8(out, FORM);
	sb_buf_add_u8(out, a->kinds);
	sb_buf_add_varint(out, a->n);
	for (size_t i = 0; i < a->n; i++) {
		sb_buf_add_bytes(out, a->v[i].path, strlen(a->v[i].path));
		sb_buf_add_bytes(out, a->v[i].set, a->v[i].len);
	}
	if (!out->failed)
		sb_buf_add_u64(out, XXH3_64bits(out->data + start, out->len - start));
	return sb_buf_check(out, "attributes", err);
}

/* As the kernel keeps it: version 2, then tag, permissions and id of each, in 8 bytes. */
static bool
is_acl(const uint8_t *p, size_t len)
{
	static const uint8_t head[4] = { 2, 0, 0, 0 };

	if (len < 4 + 3 * 8 || (len - 4) % 8 || memcmp(p, head, 4) != 0)
		return false;
	for (p += 4, len -= 4; len; p += 8, len -= 8) {
		unsigned tag = p[0] | (unsigned)p[1] << 8, perm = p[2] | (unsigned)p[3] << 8;

		if (perm > 7 || !tag || tag > 0x20 || (tag & (tag - 1)))
			return false;
	}
	return true;
}

/* A set as it may stand in a row. */
static bool
is_set(const uint8_t *p, size_t len, unsigned kinds)
{
	char last[256] = "";
	struct sb_cursor c;
	struct sb_attr a;

	sb_cursor_init(&c, p, len);
	while (sb_attrs_next(&c, &a)) {
		if (strcmp(last, a.name) >= 0 || !sb_attrs_carried(a.name, kinds) ||
			(a.name[0] == 's' && !is_acl(a.value, a.len)))
			return false;
		memcpy(last, a.name, sizeof last);
	}
	return !c.bad && !sb_cursor_left(&c);
}

static int
damaged(struct sb_error *err)
{
	return sb_fail(err, SB_E_CORRUPT, "list of attributes: damaged");
}

static int
take_row(struct sb_cursor *c, struct sb_attrs *out, struct sb_error *err)
{
	size_t path_len, len;
	const uint8_t *p = sb_cursor_bytes(c, 4096, &path_len), *set;
	char path[4097];

	if (!p || !path_len || sb_path_check((const char *)p, path_len, NULL) < 0)
		return damaged(err);
	memcpy(path, p, path_len);
	path[path_len] = 0;
	set = sb_cursor_bytes(c, SB_ATTRS_SET_MAX, &len);
	if (!set || !is_set(set, len, out->kinds) ||
		(out->n && sb_diff_path_order(out->v[out->n - 1].path, path) >= 0))
		return damaged(err);
	return sb_attrs_add(out, path, set, len, err);
}

int
sb_attrs_decode(const void *data, size_t len, uint64_t max_rows, struct sb_attrs *out,
	struct sb_error *err)
{
	sb_auto(sb_attrs) struct sb_attrs a = { 0 };
	struct sb_cursor c;
	const uint8_t *magic;
	uint64_t rows;
	int r = 0;

	if (len < 15 || len > SB_ATTRS_BYTES_MAX)
		return damaged(err);
	sb_cursor_init(&c, (const uint8_t *)data + len - 8, 8);
	if (sb_cursor_u64(&c) != XXH3_64bits(data, len - 8))
		return damaged(err);
	sb_cursor_init(&c, data, len - 8);
	magic = sb_cursor_take(&c, 4);
	if (memcmp(magic, MAGIC, 4) != 0)
		return damaged(err);
	if (sb_cursor_u8(&c) != FORM)
		return sb_fail(err, SB_E_VERSION, "list of attributes: made by a newer sbsync");
	a.kinds = sb_cursor_u8(&c);
	rows = sb_cursor_varint(&c);
	if (c.bad || a.kinds & ~SB_ATTRS_ALL || rows > len)
		return damaged(err);
	if (rows > max_rows)
		return sb_fail(err, SB_E_LIMIT, "list of attributes: of more files than there are");
	for (uint64_t i = 0; r == 0 && i < rows; i++) {
		r = sb_work_alive(err);
		if (r == 0)
			r = take_row(&c, &a, err);
	}
	if (r == 0 && sb_cursor_left(&c))
		r = damaged(err);
	if (r < 0)
		return r;
	*out = a;
	memset(&a, 0, sizeof a);
	return 0;
}
