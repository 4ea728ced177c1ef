/* SPDX-License-Identifier: MIT */
/* Reads a manifest from its compact form, which may come from a peer. */
#include "config.h"

#include <sync/tree/manifest.h>

#include <stdlib.h>
#include <string.h>

#include <base/cursor.h>
#include <base/path.h>
#include <base/work.h>
#include <sync/tree/manifest-codec-priv.h>
#include <sync/tree/manifest-priv.h>
#include <sync/tree/seal.h>

#define NAME_LEN_MAX 255
#define TARGET_LEN_MAX 4095
/* A leader's path: longer than any that a tree within the usual depth limit has. */
#define LEADER_LEN_MAX (1u << 20)

struct decoder {
	struct sb_manifest *m;
	const struct sb_manifest_limits *limits;
	struct sb_cursor head;
	struct sb_cursor col[COLUMNS];
	unsigned form;
	uint64_t entries; /* announced */
	uint64_t n_dirs;
	uint64_t n_groups;
	uint64_t seen; /* entries read so far */
	struct sb_entry **dirs;
	uint32_t *path_len; /* of each of them, with the slash behind it */
	size_t known;       /* directories met so far, the root counted */
	size_t at;          /* the one being read */
	uint64_t path_bytes;
	struct sb_buf
		names; /* of the directory being read, each with its NUL and a symlink's target */
	uint64_t last_mtime;
	uint64_t last_ino;
	uint64_t last_dev;
	uint16_t modes[KIND_TYPE + 1];
	struct sb_error *err;
};

static int
corrupt(struct decoder *c, const char *what)
{
	return sb_fail(c->err, SB_E_CORRUPT, "manifest is damaged: %s (entry %llu of %llu)", what,
		(unsigned long long)c->seen, (unsigned long long)c->entries);
}

static int
read_header(struct decoder *c, const uint8_t *data, size_t len, bool subtree)
{
	uint8_t version;
	int r = sb_seal_open(data, len, SB_MANIFEST_MAGIC, c->limits->max_bytes, "manifest",
		&c->head, c->err);

	if (r < 0)
		return r;
	version = sb_cursor_u8(&c->head);
	c->form = sb_cursor_u8(&c->head);
	if (version != SB_MANIFEST_VERSION || (c->form & ~(unsigned)FORM_ALL))
		return sb_fail(c->err, SB_E_VERSION,
			"manifest of version %u with features %#x, need version %d", version,
			c->form, SB_MANIFEST_VERSION);
	r = sb_seal_check(data, len, "manifest", c->err);
	if (r < 0)
		return r;
	if (subtree != !!(c->form & FORM_SUBTREE))
		return sb_fail(c->err, SB_E_CORRUPT, "manifest of a %s where one of a %s is needed",
			subtree ? "whole tree" : "subtree", subtree ? "subtree" : "whole tree");
	return 0;
}

/* The counts, each held against the bytes that would have to be there. */
static int
read_counts(struct decoder *c)
{
	struct sb_cursor *h = &c->head;
	struct sb_entry *root = &c->m->root;
	uint64_t mode;

	c->entries = sb_cursor_varint(h);
	c->n_dirs = sb_cursor_varint(h);
	c->n_groups = sb_cursor_varint(h);
	mode = sb_cursor_varint(h);
	root->mtime = sb_cursor_svarint(h);
	if (c->form & FORM_STAT) {
		root->ino = sb_cursor_varint(h);
		root->ctime = (int64_t)((uint64_t)root->mtime + (uint64_t)sb_cursor_svarint(h));
	}
	root->mode = (uint16_t)(mode & 07777);
	for (unsigned i = 0; i < COLUMNS; i++) {
		uint64_t n;
		const uint8_t *p;

		sb_cursor_init(&c->col[i], "", 0);
		if (i >= COL_INODES && !(c->form & FORM_STAT))
			continue;
		n = sb_cursor_u64(h);
		if (n > sb_cursor_left(h))
			return corrupt(c, "column runs past the end");
		p = sb_cursor_take(h, (size_t)n);
		if (p)
			sb_cursor_init(&c->col[i], p, (size_t)n);
	}
	if (h->bad || sb_cursor_left(h) || mode > 07777)
		return corrupt(c, "header");
	if (c->entries > c->limits->max_entries)
		return sb_fail(c->err, SB_E_LIMIT,
			"manifest of %llu entries, at most %llu are allowed",
			(unsigned long long)c->entries, (unsigned long long)c->limits->max_entries);
	if (c->entries != sb_cursor_left(&c->col[COL_KINDS]) || c->entries >= UINT32_MAX ||
		!c->n_dirs || c->n_dirs > sb_cursor_left(&c->col[COL_COUNTS]) ||
		c->n_dirs > c->entries + 1 || c->n_groups > c->entries ||
		c->n_groups > sb_cursor_left(&c->col[COL_LINKS]))
		return corrupt(c, "counts do not fit the columns");
	return 0;
}

static int
read_leaders(struct decoder *c)
{
	struct sb_manifest *m = c->m;

	m->leaders = calloc((size_t)c->n_groups + 1, sizeof *m->leaders);
	if (!m->leaders)
		return sb_fail(c->err, SB_E_NOMEM, "manifest: out of memory");
	m->cap_leaders = (uint32_t)c->n_groups + 1;
	if (!(c->form & FORM_SUBTREE)) {
		/* sb_manifest_finish_links makes the paths. */
		m->n_leaders = (uint32_t)c->n_groups;
		return 0;
	}
	for (uint64_t i = 0; i < c->n_groups; i++) {
		size_t len;
		const uint8_t *p = sb_cursor_bytes(&c->col[COL_LEADERS], LEADER_LEN_MAX, &len);

		if (!p || !len || sb_path_check((const char *)p, len, NULL) < 0)
			return corrupt(c, "path of a hard link");
		if (!sb_manifest_add_leader(m, (const char *)p, len))
			return sb_fail(c->err, SB_E_NOMEM, "manifest: out of memory");
	}
	return 0;
}

/*
 * Appends the name, made of the one before (at `before` in `names`, `*len` bytes) and what the
 * column has.
 */
static int
read_name(struct decoder *c, size_t before, size_t *len)
{
	struct sb_cursor *col = &c->col[COL_NAMES];
	uint64_t same = sb_cursor_varint(col);
	size_t rest_len;
	const uint8_t *rest = sb_cursor_bytes(col, NAME_LEN_MAX, &rest_len);
	uint8_t *to;

	if (!rest || same > *len || same + rest_len > NAME_LEN_MAX || !rest_len ||
		memchr(rest, 0, rest_len) || memchr(rest, '/', rest_len))
		return corrupt(c, "name");
	to = sb_buf_reserve(&c->names, NAME_LEN_MAX + 1);
	if (!to)
		return sb_fail(c->err, SB_E_NOMEM, "manifest: out of memory");
	memcpy(to, c->names.data + before, (size_t)same);
	memcpy(to + same, rest, rest_len);
	/*
	 * The first byte that differs decides; a name that only goes on where the other ends is
	 * above it.
	 */
	if (*len && same < *len && rest[0] <= c->names.data[before + same])
		return corrupt(c, "order of names");
	*len = (size_t)same + rest_len;
	to[*len] = 0;
	if (strcmp((char *)to, ".") == 0 || strcmp((char *)to, "..") == 0)
		return corrupt(c, "name");
	sb_buf_grow(&c->names, *len + 1);
	return 0;
}

static int
read_mode(struct decoder *c, unsigned kind, struct sb_entry *e)
{
	uint64_t mode;

	if (e->type == SB_ENTRY_LINK) {
		e->mode = 0777;
		return kind & KIND_SAME_MODE ? corrupt(c, "mode") : 0;
	}
	mode = kind & KIND_SAME_MODE ? c->modes[e->type] : sb_cursor_varint(&c->col[COL_MODES]);
	if (mode > 07777)
		return corrupt(c, "mode");
	c->modes[e->type] = e->mode = (uint16_t)mode;
	return 0;
}

static int
read_file(struct decoder *c, unsigned kind, struct sb_entry *e)
{
	e->size = sb_cursor_varint(&c->col[COL_SIZES]);
	if (e->size > INT64_MAX)
		return corrupt(c, "size");
	if (kind & KIND_UNHASHED) {
		e->flags |= SB_ENTRY_UNHASHED;
	} else {
		const uint8_t *p = sb_cursor_take(&c->col[COL_DIGESTS], sizeof e->digest.b);

		if (!p)
			return corrupt(c, "digest");
		memcpy(e->digest.b, p, sizeof e->digest.b);
		if (!sb_digest_known(&e->digest))
			return corrupt(c, "digest");
	}
	if (kind & KIND_LINKED) {
		uint64_t g = sb_cursor_varint(&c->col[COL_LINKS]);

		if (g >= c->n_groups)
			return corrupt(c, "hard link");
		e->link = (uint32_t)g + 1;
	}
	return 0;
}

static int
read_symlink(struct decoder *c, struct sb_entry *e)
{
	size_t len;
	const uint8_t *p = sb_cursor_bytes(&c->col[COL_TARGETS], TARGET_LEN_MAX, &len);

	if (!p || !len || memchr(p, 0, len))
		return corrupt(c, "target of a symlink");
	e->size = len;
	e->digest = sb_digest_of(p, len);
	sb_buf_add(&c->names, p, len);
	sb_buf_add_u8(&c->names, 0);
	return 0;
}

static int
read_entry(struct decoder *c, size_t name_len, struct sb_entry *e)
{
	unsigned kind = sb_cursor_u8(&c->col[COL_KINDS]);
	int r;

	*e = (struct sb_entry){ .type = kind & KIND_TYPE };
	if (!e->type || (kind & ~(unsigned)KIND_ALL) ||
		((kind & KIND_RACY) && !(c->form & FORM_STAT)) ||
		((kind & (KIND_LINKED | KIND_UNHASHED)) && e->type != SB_ENTRY_FILE))
		return corrupt(c, "kind");
	if (kind & KIND_RACY)
		e->flags |= SB_ENTRY_RACY;
	c->last_mtime += (uint64_t)sb_cursor_svarint(&c->col[COL_MTIMES]);
	e->mtime = (int64_t)c->last_mtime;
	if (c->form & FORM_STAT) {
		c->last_ino += (uint64_t)sb_cursor_svarint(&c->col[COL_INODES]);
		e->ino = c->last_ino;
		e->ctime =
			(int64_t)(c->last_mtime + (uint64_t)sb_cursor_svarint(&c->col[COL_CTIMES]));
	}
	r = read_mode(c, kind, e);
	if (r < 0)
		return r;
	if (e->type == SB_ENTRY_FILE)
		return read_file(c, kind, e);
	if (e->type == SB_ENTRY_LINK)
		return read_symlink(c, e);
	if (c->known == c->n_dirs)
		return corrupt(c, "number of directories");
	e->dir = sb_manifest_alloc(c->m, sizeof *e->dir);
	if (!e->dir)
		return sb_fail(c->err, SB_E_NOMEM, "manifest: out of memory");
	*e->dir = (struct sb_dir){ 0 };
	c->path_len[c->known] = c->path_len[c->at] + (uint32_t)name_len + 1;
	c->dirs[c->known++] = e;
	return 0;
}

/* Moves the names of a directory just read into the manifest. */
static int
place_names(struct decoder *c, struct sb_dir *d)
{
	char *p = sb_arena_bytes(sb_manifest_priv(c->m)->mem, c->names.len);

	if (!p || c->names.failed)
		return sb_fail(c->err, SB_E_NOMEM, "manifest: out of memory");
	memcpy(p, c->names.data, c->names.len);
	for (uint32_t i = 0; i < d->n; i++) {
		d->entries[i].name = p;
		p += strlen(p) + 1;
		if (d->entries[i].type == SB_ENTRY_LINK)
			p += d->entries[i].size + 1;
	}
	return 0;
}

static int
read_dir(struct decoder *c, struct sb_dir *d)
{
	uint64_t n = sb_cursor_varint(&c->col[COL_COUNTS]);
	size_t before = 0, len = 0;

	if (c->form & FORM_STAT) {
		c->last_dev ^= sb_cursor_varint(&c->col[COL_DEVS]);
		d->dev = c->last_dev;
	}
	if (n > c->entries - c->seen)
		return corrupt(c, "number of entries");
	if (!n)
		return 0;
	d->entries = sb_manifest_alloc(c->m, n * sizeof *d->entries);
	if (!d->entries)
		return sb_fail(c->err, SB_E_NOMEM, "manifest: out of memory");
	d->cap = (uint32_t)n;
	sb_buf_reset(&c->names);
	for (; d->n < n; d->n++, c->seen++) {
		size_t at = c->names.len;
		int r = sb_work_alive(c->err);

		if (r == 0)
			r = read_name(c, before, &len);
		if (r == 0)
			r = read_entry(c, len, &d->entries[d->n]);
		if (r < 0)
			return r;
		before = at;
		c->path_bytes += c->path_len[c->at] + len;
	}
	/* What lies on our own disk was within the limit when it came. */
	if (c->limits->max_entries < UINT32_MAX &&
		c->path_bytes > SB_MANIFEST_PATHS_MAX(c->entries))
		return sb_fail(c->err, SB_E_LIMIT, "paths in a manifest take more than %llu bytes",
			(unsigned long long)SB_MANIFEST_PATHS_MAX(c->entries));
	return place_names(c, d);
}

static int
read_tree(struct decoder *c)
{
	size_t level_end = 1;
	uint32_t depth = 1;

	c->dirs = malloc((size_t)c->n_dirs * sizeof *c->dirs);
	c->path_len = calloc((size_t)c->n_dirs, sizeof *c->path_len);
	if (!c->dirs || !c->path_len)
		return sb_fail(c->err, SB_E_NOMEM, "manifest: out of memory");
	c->dirs[c->known++] = &c->m->root;
	for (size_t i = 0; i < c->known; i++) {
		int r;

		if (i == level_end) {
			level_end = c->known;
			depth++;
		}
		c->at = i;
		r = read_dir(c, c->dirs[i]->dir);
		if (r < 0)
			return r;
		if (c->dirs[i]->dir->n && depth > c->limits->max_depth)
			return sb_fail(c->err, SB_E_LIMIT, "manifest is deeper than %u levels",
				c->limits->max_depth);
	}
	if (c->seen != c->entries || c->known != c->n_dirs)
		return corrupt(c, "number of entries");
	for (unsigned i = 0; i < COLUMNS; i++) {
		if (c->col[i].bad || sb_cursor_left(&c->col[i]))
			return corrupt(c, "length of a column");
	}
	return 0;
}

static int
finish(struct decoder *c)
{
	int r = sb_manifest_finish_digests(c->m, c->err);

	if (r < 0)
		return r;
	if (c->n_groups && !(c->form & FORM_SUBTREE)) {
		r = sb_manifest_finish_links(c->m, c->err);
		if (r < 0)
			return r;
		if (c->m->n_leaders != c->n_groups)
			return corrupt(c, "hard link of a single or unequal file");
	}
	sb_manifest_finish_id(c->m);
	return 0;
}

static struct sb_manifest *
decode(const void *data, size_t len, const struct sb_manifest_limits *limits, bool subtree,
	struct sb_error *err)
{
	static const struct sb_manifest_limits usual = SB_MANIFEST_LIMITS_INIT;
	sb_auto(sb_manifest) struct sb_manifest *m = sb_manifest_new(err);
	struct decoder c = { .m = m, .limits = limits ? limits : &usual, .err = err };
	int r;

	if (!m)
		return NULL;
	sb_buf_init(&c.names, SIZE_MAX - 1);
	r = read_header(&c, data, len, subtree);
	if (r == 0)
		r = read_counts(&c);
	if (r == 0)
		r = read_leaders(&c);
	if (r == 0)
		r = read_tree(&c);
	if (r == 0)
		r = finish(&c);
	free(c.dirs);
	free(c.path_len);
	sb_buf_free(&c.names);
	return r < 0 ? NULL : sb_steal(&m);
}

struct sb_manifest *
sb_manifest_decode(const void *data, size_t len, const struct sb_manifest_limits *limits,
	struct sb_error *err)
{
	return decode(data, len, limits, false, err);
}

struct sb_manifest *
sb_manifest_decode_dir(const void *data, size_t len, const struct sb_manifest_limits *limits,
	struct sb_error *err)
{
	return decode(data, len, limits, true, err);
}
