/* SPDX-License-Identifier: MIT */
/* The compiled form of exclude rules, which is sent to the agent and kept with the base. */
#include "config.h"

#include <sync/scan/rules-priv.h>

#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/cursor.h>

/*
 * The encoded rule set, as sent and as frozen with the base:
 *
 *   u8 version | version 2: u8 flags | varint lists | list...
 *   list:    u8 source | bytes dir | varint patterns | bytes pattern...
 *
 * `bytes` is a varint length and the bytes. Lists are strictly ascending by (source,
 * dir), the dir compared as bytes; only the sources that live in directories have a dir
 * other than "". Patterns stand in the order they were written, 1 to SB_RULE_TEXT_MAX
 * bytes each, no NUL. A list has at least one pattern. SB_RULES_TRACKED has its texts, strictly
 * ascending. The only flag, 1: git's lists are in small letters and compared so. Version 2 only
 * where version 1 does not do. So equal rule sets have equal bytes.
 */
enum {
	RULES_VERSION = 2,
	FLAG_FOLD = 1,
};

struct rules_list {
	uint8_t src;
	const char *dir;
	size_t dir_len;
	const struct sb_rule_block *last;
	const struct sb_rules_tracked *tracked;
};

static int
compare_dirs(const char *a, size_t alen, const char *b, size_t blen)
{
	size_t n = alen < blen ? alen : blen;
	int c = n ? memcmp(a, b, n) : 0;

	return c ? c : (alen > blen) - (alen < blen);
}

static int
compare_lists(const void *a, const void *b)
{
	const struct rules_list *x = a, *y = b;

	if (x->src != y->src)
		return x->src < y->src ? -1 : 1;
	return compare_dirs(x->dir, x->dir_len, y->dir, y->dir_len);
}

static void
add_list(struct rules_list *v, size_t *n, uint8_t src, const struct sb_rules_dir *d,
	const struct sb_rule_block *last)
{
	if (last)
		v[(*n)++] = (struct rules_list){ .src = src,
			.dir = d ? d->path : "",
			.dir_len = d ? d->len : 0,
			.last = last };
}

static void
encode_list(const struct rules_list *l, const struct sb_rule_block **blocks, struct sb_buf *out)
{
	size_t depth = 0, count = 0;

	/*
	 * Blocks hang together from the last to the first; they double, so 64 are more
	 * than there can be.
	 */
	for (const struct sb_rule_block *b = l->last; b && depth < 64; b = b->prev) {
		blocks[depth++] = b;
		count += b->n;
	}
	sb_buf_add_u8(out, l->src);
	sb_buf_add_bytes(out, l->dir, l->dir_len);
	sb_buf_add_varint(out, l->tracked ? l->tracked->n : count);
	for (size_t i = 0; l->tracked && i < l->tracked->n; i++)
		sb_buf_add_bytes(out, l->tracked->v[i], strlen(l->tracked->v[i]));
	while (depth-- > 0)
		for (size_t i = 0; i < blocks[depth]->n; i++)
			sb_buf_add_bytes(out, blocks[depth]->v[i].text, blocks[depth]->v[i].len);
}

static int
encode_locked(const struct sb_rules *r, struct sb_buf *out, struct sb_error *err)
{
	const struct sb_rule_block *blocks[64];
	sb_autofree struct rules_list *v = malloc((r->n_dirs * 3 + 4) * sizeof *v);
	uint8_t version = r->fold ? 2 : 1;
	size_t n = 0;

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "exclude rules: out of memory");
	add_list(v, &n, SB_RULES_COMMAND, NULL, r->command);
	add_list(v, &n, SB_RULES_FROM_FILE, NULL, r->from_file);
	add_list(v, &n, SB_RULES_BUILTIN, NULL, r->builtin);
	for (size_t i = 0; i < r->n_buckets; i++) {
		for (const struct sb_rules_dir *d = r->buckets[i]; d; d = d->next) {
			for (size_t k = 0; k < SB_RULES_FILES; k++)
				add_list(v, &n, sb_rules_source_of(k), d, d->files[k]);
		}
	}
	if (r->tracked && r->tracked->n)
		v[n++] = (struct rules_list){ .src = SB_RULES_TRACKED,
			.dir = "",
			.tracked = r->tracked };
	qsort(v, n, sizeof *v, compare_lists);
	for (size_t i = 0; i < n; i++)
		if (v[i].src > SB_RULES_COMMAND)
			version = 2;
	sb_buf_add_u8(out, version);
	if (version == 2)
		sb_buf_add_u8(out, r->fold ? FLAG_FOLD : 0);
	sb_buf_add_varint(out, n);
	for (size_t i = 0; i < n; i++)
		encode_list(&v[i], blocks, out);
	return sb_buf_check(out, "exclude rules", err);
}

int
sb_rules_encode(const struct sb_rules *r, struct sb_buf *out, struct sb_error *err)
{
	struct sb_rules *m = (struct sb_rules *)r;
	int ret;

	(void)pthread_rwlock_rdlock(&m->mu);
	ret = encode_locked(r, out, err);
	(void)pthread_rwlock_unlock(&m->mu);
	return ret;
}

int
sb_rules_digest(const struct sb_rules *r, struct sb_digest *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	int ret;

	sb_buf_init(&b, SB_RULES_ENCODED_MAX);
	ret = sb_rules_encode(r, &b, err);
	if (ret < 0)
		return ret;
	*out = sb_digest_of(b.data, b.len);
	return 0;
}

static int
damaged(struct sb_error *err, const char *what)
{
	return sb_fail(err, SB_E_CORRUPT, "exclude rules: %s", what);
}

/* The head of one list, checked against the one before it. */
static int
decode_head(struct sb_cursor *c, unsigned version, const struct rules_list *before,
	struct rules_list *out, size_t *count, struct sb_error *err)
{
	uint64_t n;

	out->src = sb_cursor_u8(c);
	out->dir = (const char *)sb_cursor_bytes(c, SB_RULES_DIR_LEN_MAX, &out->dir_len);
	n = sb_cursor_varint(c);
	if (c->bad)
		return damaged(err, "cut short");
	if (out->src >= SB_RULES_SOURCES || (version == 1 && out->src > SB_RULES_COMMAND))
		return damaged(err, "unknown source");
	if (!sb_rules_dir_ok(out->dir, out->dir_len))
		return damaged(err, "bad directory name");
	if (out->dir_len > 0 && out->src != SB_RULES_GITIGNORE &&
		out->src != SB_RULES_SBSYNCIGNORE && out->src != SB_RULES_GITEXCLUDE)
		return damaged(err, "directory where none belongs");
	if (before->dir && compare_lists(before, out) >= 0)
		return damaged(err, "lists out of order");
	/*
	 * Each pattern takes two bytes or more: what is not there cannot make us
	 * allocate.
	 */
	if (n == 0 || n > sb_cursor_left(c) / 2)
		return damaged(err, "bad pattern count");
	if (n > SB_RULES_COUNT_MAX)
		return sb_fail(err, SB_E_LIMIT, "more than %u exclude patterns",
			SB_RULES_COUNT_MAX);
	*count = (size_t)n;
	return 0;
}

/* The texts are in memory of the message, without NUL: made into a list of their own. */
static int
set_tracked(struct sb_rules *r, const char **texts, const uint16_t *lens, size_t n,
	struct sb_error *err)
{
	size_t bytes = 0;
	sb_autofree char *copy = NULL;
	char *p;

	for (size_t i = 0; i < n; i++)
		bytes += lens[i] + 1u;
	p = copy = malloc(bytes);
	if (!copy)
		return sb_fail(err, SB_E_NOMEM, "exclude rules: out of memory");
	for (size_t i = 0; i < n; i++) {
		memcpy(p, texts[i], lens[i]);
		p[lens[i]] = 0;
		texts[i] = p;
		p += lens[i] + 1u;
	}
	return sb_rules_set_tracked(r, texts, n, err);
}

/* Patterns that are compared in small letters are written so. */
static bool
has_capitals(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] >= 'A' && text[i] <= 'Z')
			return true;
	return memmem(text, len, "[:upper:]", 9) != NULL;
}

static int
decode_list(struct sb_rules *r, struct sb_cursor *c, unsigned version, struct rules_list *before,
	struct sb_error *err)
{
	sb_autofree const char **texts = NULL;
	sb_autofree uint16_t *lens = NULL;
	struct rules_list l = { 0 };
	size_t count = 0;
	int ret = decode_head(c, version, before, &l, &count, err);

	if (ret < 0)
		return ret;
	texts = malloc(count * sizeof *texts);
	lens = malloc(count * sizeof *lens);
	if (!texts || !lens)
		return sb_fail(err, SB_E_NOMEM, "exclude rules: out of memory");
	for (size_t i = 0; i < count; i++) {
		size_t len;

		texts[i] = (const char *)sb_cursor_bytes(c, SB_RULE_TEXT_MAX, &len);
		if (c->bad)
			return damaged(err, "cut short, or a pattern is too long");
		if (len == 0 || memchr(texts[i], 0, len))
			return damaged(err, "bad pattern");
		if (r->fold && (l.src == SB_RULES_GITIGNORE || l.src == SB_RULES_GITEXCLUDE) &&
			has_capitals(texts[i], len))
			return damaged(err, "capital letters");
		lens[i] = (uint16_t)len;
	}
	*before = l;
	if (l.src == SB_RULES_TRACKED)
		return set_tracked(r, texts, lens, count, err);
	return sb_rules_add_texts(r, (enum sb_rules_source)l.src, l.dir, l.dir_len, texts, lens,
		count, err);
}

struct sb_rules *
sb_rules_decode(const void *data, size_t len, struct sb_error *err)
{
	sb_auto(sb_rules) struct sb_rules *r = NULL;
	struct rules_list before = { 0 };
	struct sb_cursor c;
	uint64_t lists;
	uint8_t version, flags;

	if (len > SB_RULES_ENCODED_MAX) {
		(void)sb_fail(err, SB_E_LIMIT, "exclude rules: %zu bytes", len);
		return NULL;
	}
	sb_cursor_init(&c, data, len);
	version = sb_cursor_u8(&c);
	flags = version == 2 ? sb_cursor_u8(&c) : 0;
	lists = sb_cursor_varint(&c);
	if (!c.bad && (version < 1 || version > RULES_VERSION)) {
		(void)sb_fail(err, SB_E_VERSION, "exclude rules: version %u, this program knows %u",
			version, RULES_VERSION);
		return NULL;
	}
	if (c.bad || lists > sb_cursor_left(&c) || flags > FLAG_FOLD) {
		(void)damaged(err, "cut short");
		return NULL;
	}
	r = sb_rules_new(err);
	if (!r)
		return NULL;
	r->fold = flags & FLAG_FOLD;
	for (uint64_t i = 0; i < lists; i++)
		if (decode_list(r, &c, version, &before, err) < 0)
			return NULL;
	if (sb_cursor_left(&c) > 0) {
		(void)damaged(err, "bytes behind the end");
		return NULL;
	}
	return sb_steal(&r);
}
