/* SPDX-License-Identifier: MIT */
/*
 * The index file "index": the catalog, so that opening reads one file instead of every
 * block's header. Written now and then; blocks behind what it covers are found by
 * scanning. Without it, or when anything is wrong with it, everything is found by
 * scanning. All numbers little-endian:
 *
 *    0  "SBI1", u32 segments, u32 blocks, u32 items, u64 XXH3-64 of all that follows
 *   24  segments: u32 id, u64 covered length
 *       blocks:   u32 segment id, u64 offset, u32 raw, u32 packed, u32 items, u8 codec
 *       items:    digest (16), u32 length; in the order of the blocks
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cursor.h>
#include <base/file.h>

#include <sync/codec/store-priv.h>

#define INDEX_NAME "index"
#define INDEX_NEW "index.new"
#define INDEX_MAGIC "SBI1"
#define INDEX_HEAD 24u
#define SEGMENT_LEN 12u
#define BLOCK_LEN 25u
#define ITEM_LEN 20u
#define INDEX_MAX (1u << 30)
#define BLOCK_HEAD 32u /* on disk, see store-segment.c */

struct counts {
	uint32_t segments, blocks, items;
};

void
sb_store_index_remove(struct sb_store *s)
{
	if (s->indexed_blocks)
		(void)unlinkat(s->dirfd, INDEX_NAME, 0);
	s->indexed_blocks = 0;
}

/* ---- load ---- */

/* Each segment of the index must be there, in order, and as long as the index knew it. */
static bool
load_segments(struct sb_store *s, struct sb_cursor *c, uint32_t n, uint64_t *covered)
{
	size_t k = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t id = sb_cursor_u32(c);
		uint64_t len = sb_cursor_u64(c);

		while (k < s->n_segments && s->segments[k].id != id)
			k++;
		if (k == s->n_segments || len > s->segments[k].size)
			return false;
		covered[k++] = len;
	}
	return true;
}

static bool
load_block(struct sb_store *s, struct sb_cursor *c, const uint64_t *covered)
{
	struct sb_store_block f = { .segment = sb_cursor_u32(c) };
	uint32_t n_items, number;
	uint8_t codec;
	size_t k = 0;

	f.at = sb_cursor_u64(c);
	f.raw_len = sb_cursor_u32(c);
	f.packed_len = sb_cursor_u32(c);
	n_items = sb_cursor_u32(c);
	codec = sb_cursor_u8(c);
	f.zstd = codec == 1;
	while (k < s->n_segments && s->segments[k].id != f.segment)
		k++;
	if (k == s->n_segments || codec > 1 || f.raw_len > SB_STORE_RAW_MAX || !n_items ||
		n_items > SB_STORE_ITEMS_MAX || (!f.zstd && f.raw_len != f.packed_len))
		return false;
	f.header_len = BLOCK_HEAD + n_items * ITEM_LEN;
	if (f.at > covered[k] || (uint64_t)f.header_len + f.packed_len > covered[k] - f.at)
		return false;
	if (sb_store_catalog_add_block(&s->cat, &f, &number, NULL) < 0)
		return false;
	s->cat.blocks[number].n_items = n_items;
	return true;
}

/* The blocks have their counts; gives each its items. */
static bool
load_items(struct sb_store_catalog *cat, struct sb_cursor *c, uint32_t n)
{
	size_t at = 0;

	cat->items = calloc(n ? n : 1, sizeof *cat->items);
	if (!cat->items)
		return false;
	cat->items_cap = n ? n : 1;
	for (size_t i = 0; i < cat->n_blocks; i++) {
		struct sb_store_block *f = &cat->blocks[i];
		uint64_t off = 0;

		if (f->n_items > n - at)
			return false;
		f->first_item = (uint32_t)at;
		for (uint32_t k = 0; k < f->n_items; k++) {
			struct sb_store_item *it = &cat->items[at++];

			memcpy(it->digest.b, sb_cursor_take(c, sizeof it->digest.b),
				sizeof it->digest.b);
			it->len = sb_cursor_u32(c);
			it->block = (uint32_t)i;
			it->off = (uint32_t)off;
			if (it->len > f->raw_len - off)
				return false;
			off += it->len;
		}
	}
	cat->n_items = at;
	return at == n && sb_store_catalog_rehash(cat, NULL) == 0;
}

/* Magic, lengths and checksum; then every read below stays inside. */
static bool
check_head(struct sb_cursor *c, struct counts *n)
{
	const uint8_t *magic = sb_cursor_take(c, 4);
	uint64_t sum, want;

	n->segments = sb_cursor_u32(c);
	n->blocks = sb_cursor_u32(c);
	n->items = sb_cursor_u32(c);
	sum = sb_cursor_u64(c);
	if (c->bad || memcmp(magic, INDEX_MAGIC, 4) != 0)
		return false;
	want = (uint64_t)n->segments * SEGMENT_LEN + (uint64_t)n->blocks * BLOCK_LEN +
		(uint64_t)n->items * ITEM_LEN;
	return want == sb_cursor_left(c) && XXH3_64bits(c->p, sb_cursor_left(c)) == sum;
}

void
sb_store_index_load(struct sb_store *s, uint64_t *covered)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_cursor c;
	struct counts n;
	bool good;

	sb_buf_init(&b, 0);
	if (sb_file_read(s->dirfd, INDEX_NAME, INDEX_MAX, &b, NULL) < 0)
		return;
	sb_cursor_init(&c, b.data, b.len);
	good = check_head(&c, &n) && load_segments(s, &c, n.segments, covered);
	for (uint32_t i = 0; i < n.blocks && good; i++)
		good = load_block(s, &c, covered);
	if (good && load_items(&s->cat, &c, n.items)) {
		s->indexed_blocks = s->cat.n_blocks;
		return;
	}
	/* It could seem to fit again one day. */
	(void)unlinkat(s->dirfd, INDEX_NAME, 0);
	sb_store_catalog_free(&s->cat);
	memset(covered, 0, s->n_segments * sizeof *covered);
}

/* ---- save ---- */

static void
add_catalog(struct sb_store *s, struct sb_buf *b)
{
	const struct sb_store_catalog *cat = &s->cat;

	for (size_t i = 0; i < s->n_segments; i++) {
		sb_buf_add_u32(b, s->segments[i].id);
		sb_buf_add_u64(b, s->segments[i].size);
	}
	for (size_t i = 0; i < cat->n_blocks; i++) {
		const struct sb_store_block *f = &cat->blocks[i];

		sb_buf_add_u32(b, f->segment);
		sb_buf_add_u64(b, f->at);
		sb_buf_add_u32(b, f->raw_len);
		sb_buf_add_u32(b, f->packed_len);
		sb_buf_add_u32(b, f->n_items);
		sb_buf_add_u8(b, f->zstd);
	}
	for (size_t i = 0; i < cat->n_items; i++) {
		sb_buf_add(b, cat->items[i].digest.b, sizeof cat->items[i].digest.b);
		sb_buf_add_u32(b, cat->items[i].len);
	}
}

/* No fsync: the checksum says whether all of it is there. */
static int
write_file(struct sb_store *s, const struct sb_buf *b, struct sb_error *err)
{
	sb_autoclose int fd = openat(s->dirfd, INDEX_NEW,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r;

	if (fd < 0)
		return sb_fail_errno(err, "make the index of the store");
	r = sb_file_write_all(fd, b->data, b->len, err);
	if (r >= 0 && renameat(s->dirfd, INDEX_NEW, s->dirfd, INDEX_NAME) < 0)
		r = sb_fail_errno(err, "replace the index of the store");
	if (r < 0)
		(void)unlinkat(s->dirfd, INDEX_NEW, 0);
	return r;
}

int
sb_store_index_save(struct sb_store *s, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	XXH64_hash_t sum;
	int r;

	sb_buf_init(&b, INDEX_MAX);
	(void)sb_buf_reserve(&b,
		INDEX_HEAD + s->n_segments * SEGMENT_LEN + s->cat.n_blocks * BLOCK_LEN +
			s->cat.n_items * ITEM_LEN);
	sb_buf_add(&b, INDEX_MAGIC, 4);
	sb_buf_add_u32(&b, (uint32_t)s->n_segments);
	sb_buf_add_u32(&b, (uint32_t)s->cat.n_blocks);
	sb_buf_add_u32(&b, (uint32_t)s->cat.n_items);
	sb_buf_add_u64(&b, 0);
	add_catalog(s, &b);
	r = sb_buf_check(&b, "index of the store", err);
	if (r < 0)
		return r;
	sum = XXH3_64bits(b.data + INDEX_HEAD, b.len - INDEX_HEAD);
	for (unsigned i = 0; i < 8; i++)
		b.data[INDEX_HEAD - 8 + i] = (uint8_t)(sum >> (8 * i));
	r = write_file(s, &b, err);
	if (r >= 0)
		s->indexed_blocks = s->cat.n_blocks;
	return r;
}
