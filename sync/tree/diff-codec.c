/* SPDX-License-Identifier: MIT */
/* The bytes of a difference, for the wire and the disk; decodes those of a peer. */
#include "config.h"

#include <sync/tree/diff.h>

#include <stdlib.h>
#include <string.h>

#include <base/cursor.h>
#include <base/path.h>
#include <base/work.h>
#include <sync/tree/manifest-priv.h>
#include <sync/tree/seal.h>

/*
 * The compact form of a list of changes. Integers are LEB128 varints (signed ones in zigzag form).
 *
 *   magic "SBDF" | version u8 | number of changes
 *   per change:
 *     kind u8: type (0: DEL) and ROW_* bits
 *     bytes shared with the path before | length of the rest | the rest
 *     PUT: mode (not of symlinks) | difference to the mtime of the PUT before (signed)
 *       file: size | digest, 16 bytes, unless ROW_UNHASHED | leader (length, path) if ROW_LINKED
 *       symlink: length of the target | target
 *   XXH3-64 of all that is before, u64 little-endian
 *
 * Paths rise strictly in pre-order: '/' sorts below every other byte, the end of a path below '/'.
 * Only a PUT may follow a DEL of the same path.
 */
#define DIFF_MAGIC "SBDF"
#define DIFF_VERSION 1

enum {
	ROW_TYPE = 3,
	ROW_LINKED = 1 << 2,
	ROW_UNHASHED = 1 << 3,
	ROW_LEADS = 1 << 4, /* its own path is the leader; not with ROW_LINKED */
	ROW_ALL = (1 << 5) - 1,
};

/* The smallest row: kind, shared, length, and one byte of path or none. */
#define ROW_MIN 3
#define TARGET_LEN_MAX 4095
#define PATH_LEN_MAX (4u << 20)

/* Compares in pre-order. `out_same` is the length of what both begin with. */
static int
compare_paths(const char *a, size_t a_len, const char *b, size_t b_len, size_t *out_same)
{
	size_t n = a_len < b_len ? a_len : b_len, i = 0;
	int x, y;

	while (i < n && a[i] == b[i])
		i++;
	*out_same = i;
	x = i == a_len ? -1 : a[i] == '/' ? 0 : (uint8_t)a[i];
	y = i == b_len ? -1 : b[i] == '/' ? 0 : (uint8_t)b[i];
	return x - y;
}

int
sb_diff_order(const char *a, const char *b)
{
	size_t same;

	return compare_paths(a, strlen(a), b, strlen(b), &same);
}

static void
encode_put(const struct sb_change *c, unsigned kind, uint64_t *last_mtime, struct sb_buf *out)
{
	const struct sb_entry *e = &c->entry;

	if (e->type != SB_ENTRY_LINK)
		sb_buf_add_varint(out, e->mode);
	sb_buf_add_svarint(out, (int64_t)((uint64_t)e->mtime - *last_mtime));
	*last_mtime = (uint64_t)e->mtime;
	if (e->type == SB_ENTRY_LINK)
		sb_buf_add_bytes(out, c->target, strlen(c->target));
	if (e->type != SB_ENTRY_FILE)
		return;
	sb_buf_add_varint(out, e->size);
	if (!(kind & ROW_UNHASHED))
		sb_buf_add(out, e->digest.b, sizeof e->digest.b);
	if (kind & ROW_LINKED)
		sb_buf_add_bytes(out, c->leader, strlen(c->leader));
}

static unsigned
kind_of(const struct sb_change *c)
{
	unsigned kind = c->del ? 0 : c->entry.type;

	if (c->del || c->entry.type != SB_ENTRY_FILE)
		return kind;
	if (c->leader)
		kind |= strcmp(c->leader, c->path) == 0 ? ROW_LEADS : ROW_LINKED;
	if (c->entry.flags & SB_ENTRY_UNHASHED)
		kind |= ROW_UNHASHED;
	return kind;
}

int
sb_diff_encode(const struct sb_diff *d, struct sb_buf *out, struct sb_error *err)
{
	size_t start = out->len, before_len = 0;
	const char *before = "";
	uint64_t last_mtime = 0;

	sb_buf_add(out, DIFF_MAGIC, 4);
	sb_buf_add_u8(out, DIFF_VERSION);
	sb_buf_add_varint(out, d->n);
	for (size_t i = 0; i < d->n; i++) {
		const struct sb_change *c = &d->v[i];
		size_t len = strlen(c->path), same;
		unsigned kind = kind_of(c);

		(void)compare_paths(before, before_len, c->path, len, &same);
		sb_buf_add_u8(out, (uint8_t)kind);
		sb_buf_add_varint(out, same);
		sb_buf_add_bytes(out, c->path + same, len - same);
		if (!c->del)
			encode_put(c, kind, &last_mtime, out);
		before = c->path;
		before_len = len;
	}
	if (!out->failed)
		sb_buf_add_u64(out, XXH3_64bits(out->data + start, out->len - start));
	return sb_buf_check(out, "encoded changes", err);
}

struct diff_reader {
	struct sb_cursor in;
	const struct sb_manifest_limits *limits;
	struct sb_diff *out;
	struct sb_buf path; /* of the row before, then of this one */
	bool before_del;
	uint64_t last_mtime;
	uint64_t path_bytes;
	uint64_t n;
	struct sb_error *err;
};

static int
corrupt(struct diff_reader *r, const char *what)
{
	return sb_fail(r->err, SB_E_CORRUPT, "list of changes is damaged: %s (change %zu of %llu)",
		what, r->out->n, (unsigned long long)r->n);
}

static int
read_header(struct diff_reader *r, const uint8_t *data, size_t len)
{
	uint8_t version;
	int e = sb_seal_open(data, len, DIFF_MAGIC, r->limits->max_bytes, "list of changes", &r->in,
		r->err);

	if (e < 0)
		return e;
	version = sb_cursor_u8(&r->in);
	if (version != DIFF_VERSION)
		return sb_fail(r->err, SB_E_VERSION, "list of changes of version %u, need %d",
			version, DIFF_VERSION);
	e = sb_seal_check(data, len, "list of changes", r->err);
	if (e < 0)
		return e;
	r->n = sb_cursor_varint(&r->in);
	if (r->n > r->limits->max_entries)
		return sb_fail(r->err, SB_E_LIMIT, "%llu changes, at most %llu are allowed",
			(unsigned long long)r->n, (unsigned long long)r->limits->max_entries);
	if (r->in.bad || r->n > sb_cursor_left(&r->in) / ROW_MIN)
		return corrupt(r, "header");
	return 0;
}

/*
 * Does the new path, which shares `same` bytes with the one before and goes on with `rest`, stand
 * above it?
 */
static bool
rises(const struct diff_reader *r, size_t same, const uint8_t *rest, size_t rest_len, bool del)
{
	size_t before = r->path.len;
	int x, y;

	if (same == before && !rest_len)
		return before && r->before_del && !del;
	if (!rest_len)
		return false;
	x = same == before ? -1 : r->path.data[same] == '/' ? 0 : r->path.data[same];
	y = rest[0] == '/' ? 0 : rest[0];
	return x < y;
}

static int
read_path(struct diff_reader *r, bool del)
{
	uint64_t same = sb_cursor_varint(&r->in);
	size_t rest_len, depth = 1;
	const uint8_t *rest = sb_cursor_bytes(&r->in, PATH_LEN_MAX, &rest_len);

	if (!rest || same > r->path.len || !rises(r, (size_t)same, rest, rest_len, del))
		return corrupt(r, "order of paths");
	r->path.len = (size_t)same;
	sb_buf_add(&r->path, rest, rest_len);
	if (r->path.failed == SB_E_NOMEM)
		return sb_fail(r->err, SB_E_NOMEM, "list of changes: out of memory");
	r->path_bytes += r->path.len;
	if (r->path.failed || r->path_bytes > SB_MANIFEST_PATHS_MAX(r->n))
		return sb_fail(r->err, SB_E_LIMIT,
			"paths in a list of changes take more than %llu bytes",
			(unsigned long long)SB_MANIFEST_PATHS_MAX(r->n));
	if (sb_path_check((char *)r->path.data, r->path.len, NULL) < 0)
		return corrupt(r, "path");
	for (size_t i = 0; i < r->path.len; i++)
		depth += r->path.data[i] == '/';
	if (depth > r->limits->max_depth)
		return sb_fail(r->err, SB_E_LIMIT,
			"path in a list of changes is deeper than %u levels", r->limits->max_depth);
	r->before_del = del;
	return 0;
}

/* Bytes into a NUL-terminated copy that lives as long as the list. */
static int
read_text(struct diff_reader *r, size_t max, const char *what, const char **out)
{
	size_t len;
	const uint8_t *p = sb_cursor_bytes(&r->in, max, &len);

	if (!p || !len || memchr(p, 0, len))
		return corrupt(r, what);
	*out = sb_arena_strdup(r->out->arena, (const char *)p, len);
	return *out ? 0 : sb_fail(r->err, SB_E_NOMEM, "list of changes: out of memory");
}

static int
read_file(struct diff_reader *r, unsigned kind, struct sb_entry *e, const char **leader)
{
	const uint8_t *p;
	int code;

	e->size = sb_cursor_varint(&r->in);
	if (e->size > INT64_MAX)
		return corrupt(r, "size");
	if (kind & ROW_UNHASHED) {
		e->flags |= SB_ENTRY_UNHASHED;
	} else {
		p = sb_cursor_take(&r->in, sizeof e->digest.b);
		if (!p)
			return corrupt(r, "digest");
		memcpy(e->digest.b, p, sizeof e->digest.b);
		if (!sb_digest_known(&e->digest))
			return corrupt(r, "digest");
	}
	if (kind & ROW_LEADS)
		*leader = (const char *)r->path.data;
	if (!(kind & ROW_LINKED))
		return 0;
	code = read_text(r, PATH_LEN_MAX, "hard link", leader);
	if (code < 0)
		return code;
	if (sb_path_check(*leader, strlen(*leader), NULL) < 0)
		return corrupt(r, "hard link");
	return 0;
}

static int
read_row(struct diff_reader *r)
{
	unsigned kind = sb_cursor_u8(&r->in);
	struct sb_entry e = { .type = kind & ROW_TYPE };
	const char *target = NULL, *leader = NULL;
	int code;

	if ((kind & ~(unsigned)ROW_ALL) ||
		(kind & (ROW_LINKED | ROW_LEADS)) == (ROW_LINKED | ROW_LEADS) ||
		(e.type != SB_ENTRY_FILE && kind != e.type))
		return corrupt(r, "kind");
	code = read_path(r, !kind);
	if (code < 0)
		return code;
	if (kind) {
		uint64_t mode = e.type == SB_ENTRY_LINK ? 0777 : sb_cursor_varint(&r->in);

		if (mode > 07777)
			return corrupt(r, "mode");
		e.mode = (uint16_t)mode;
		r->last_mtime += (uint64_t)sb_cursor_svarint(&r->in);
		e.mtime = (int64_t)r->last_mtime;
	}
	if (e.type == SB_ENTRY_FILE)
		code = read_file(r, kind, &e, &leader);
	else if (e.type == SB_ENTRY_LINK)
		code = read_text(r, TARGET_LEN_MAX, "target of a symlink", &target);
	if (code < 0)
		return code;
	if (r->in.bad)
		return corrupt(r, "length");
	if (target) {
		e.size = strlen(target);
		e.digest = sb_digest_of(target, e.size);
	}
	return sb_diff_add(r->out, (const char *)r->path.data, !kind, &e, target, leader, r->err);
}

int
sb_diff_decode(const void *data, size_t len, const struct sb_manifest_limits *limits,
	struct sb_diff *out, struct sb_error *err)
{
	static const struct sb_manifest_limits usual = SB_MANIFEST_LIMITS_INIT;
	struct diff_reader r = { .limits = limits ? limits : &usual, .out = out, .err = err };
	int code;

	sb_buf_init(&r.path, PATH_LEN_MAX);
	out->arena = sb_arena_new();
	code = out->arena ? 0 : sb_fail(err, SB_E_NOMEM, "list of changes: out of memory");
	if (code == 0)
		code = read_header(&r, data, len);
	while (code == 0 && out->n < r.n) {
		code = sb_work_alive(err);
		if (code == 0)
			code = read_row(&r);
	}
	if (code == 0 && sb_cursor_left(&r.in))
		code = corrupt(&r, "bytes behind the last change");
	sb_buf_free(&r.path);
	if (code < 0)
		sb_diff_free(out);
	return code;
}
