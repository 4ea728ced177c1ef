/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_STORE_PRIV_H
#define SBSYNC_STORE_PRIV_H

#include <pthread.h>

#include <zstd.h>

#include <sync/codec/store.h>

/*
 * Parts of the store. Contents lie in blocks, blocks in segments (files pack-ID). The
 * catalog says which content lies where; the index file is the catalog on disk.
 *
 *   store.c          calls of users, pending contents, decoded blocks
 *   store-clean.c    the cap: which segments go
 *   store-segment.c  the files and the blocks in them
 *   store-catalog.c  digest -> place, in memory
 *   store-index.c    the catalog on disk
 */

#define SB_STORE_RAW_MAX (1u << 30)   /* bytes of a block before compression */
#define SB_STORE_ITEMS_MAX (1u << 16) /* contents of a block */
#define SB_STORE_SEGMENTS_MAX 256u

/* One content. In a batch `block` means nothing. */
struct sb_store_item {
	struct sb_digest digest;
	uint32_t block;
	uint32_t off, len;
};

/* Contents in memory: being gathered, or being compressed and written. */
struct sb_store_batch {
	struct sb_buf raw;
	struct sb_store_item *items;
	size_t n_items, items_cap;
	struct sb_store_batch *next;
};

/* Where a block is. */
struct sb_store_block {
	uint32_t segment; /* id */
	uint32_t header_len, packed_len, raw_len;
	bool zstd;
	uint64_t at;                  /* offset of its header in the segment */
	uint32_t first_item, n_items; /* its contents in the catalog */
};

struct sb_store_catalog {
	struct sb_store_block *blocks;
	size_t n_blocks, blocks_cap;
	struct sb_store_item *items;
	size_t n_items, items_cap;
	uint32_t *table; /* item + 1 by hash, 0: empty; length table_mask + 1 */
	size_t table_mask;
};

struct sb_store_segment {
	uint32_t id;
	int fd;
	uint64_t size;
};

/* A block decoded not long ago. */
struct sb_store_decoded {
	uint32_t block;
	uint8_t *raw; /* NULL: unused */
	uint64_t used;
};

#define SB_STORE_DECODED 8

struct sb_store {
	int dirfd;
	struct sb_store_opts opts;
	uint64_t segment_size; /* one that is larger gets no more blocks */

	pthread_mutex_t mu;
	pthread_cond_t written; /* a batch left in_flight */
	struct sb_store_catalog cat;
	struct sb_store_segment *segments; /* oldest first; the last one is appended to */
	size_t n_segments;
	struct sb_store_batch *pending;   /* being gathered; may be NULL */
	struct sb_store_batch *in_flight; /* being compressed, without `mu` */
	bool cleaning;                    /* a thread is in sb_store_clean */
	uint64_t bytes;                   /* of all segments */
	size_t indexed_blocks;            /* how many of the catalog the index file has */
	struct sb_store_decoded decoded[SB_STORE_DECODED];
	uint64_t clock;
	ZSTD_DCtx *dctx;
	ZSTD_CCtx *spare_cctx; /* between two batches; may be NULL */
};

/* ---- store-catalog.c ---- */

void sb_store_catalog_free(struct sb_store_catalog *c);
/* The item with that digest, or NULL. */
struct sb_store_item *sb_store_catalog_find(const struct sb_store_catalog *c,
	const struct sb_digest *d);
/* Adds a block without items. Gives its number. */
int sb_store_catalog_add_block(struct sb_store_catalog *c, const struct sb_store_block *f,
	uint32_t *out, struct sb_error *err);
/*
 * Adds a content to the block added last; a digest that is there already gets this place.
 */
int sb_store_catalog_add_item(struct sb_store_catalog *c, const struct sb_digest *d, uint32_t off,
	uint32_t len, struct sb_error *err);
/* Forgets every block of the segment. Blocks and items get new numbers. */
void sb_store_catalog_drop_segment(struct sb_store_catalog *c, uint32_t segment);
/* Forgets the blocks from `n_blocks` on. */
void sb_store_catalog_truncate(struct sb_store_catalog *c, size_t n_blocks);
/* Builds the table again, after the caller put items in place itself. */
int sb_store_catalog_rehash(struct sb_store_catalog *c, struct sb_error *err);

/* ---- store-segment.c ---- */

/*
 * Opens every segment in the directory, oldest first. What is no file of ours is removed.
 */
int sb_store_segments_open(struct sb_store *s, struct sb_error *err);
/*
 * Adds what stands behind `from` in the segment to the catalog; cuts off a broken tail.
 */
int sb_store_segment_scan(struct sb_store *s, struct sb_store_segment *g, uint64_t from,
	struct sb_error *err);
/* Appends a block (header, items, payload in one piece) and says where it is. */
int sb_store_segment_append(struct sb_store *s, const void *block, size_t len, uint32_t *out_id,
	uint64_t *out_at, struct sb_error *err);
/* Starts a segment that is appended to from now on. */
int sb_store_segment_begin(struct sb_store *s, struct sb_error *err);
/* Unlinks the segment at `i` and forgets its contents. */
void sb_store_segment_drop(struct sb_store *s, size_t i);
/* The header of a block with these contents, appended to `out`. */
void sb_store_block_header(const struct sb_store_block *f, const struct sb_store_item *items,
	struct sb_buf *out);
/* The packed bytes of a block (`whole`: with its header) into `to`. */
int sb_store_block_read(struct sb_store *s, const struct sb_store_block *f, bool whole, void *to,
	struct sb_error *err);
void sb_store_segments_close(struct sb_store *s);

/* ---- store-index.c ---- */

/*
 * Loads the index file if it fits the segments; `covered` (one a segment) says up to where. A
 * damaged one covers nothing.
 */
void sb_store_index_load(struct sb_store *s, uint64_t *covered);
int sb_store_index_save(struct sb_store *s, struct sb_error *err);
/* Removes the file, before a segment goes that it names. */
void sb_store_index_remove(struct sb_store *s);

/* ---- store.c, all with `mu` held ---- */

/* Compresses and writes what is pending. Releases `mu` meanwhile and takes it again. */
int sb_store_write_pending(struct sb_store *s, struct sb_error *err);
/* sb_store_add. */
int sb_store_add_locked(struct sb_store *s, const struct sb_digest *d, const void *data, size_t len,
	struct sb_error *err);
/* Borrowed bytes of a block, decoded; valid until the next call. */
const uint8_t *sb_store_decode(struct sb_store *s, uint32_t block, struct sb_error *err);
/* Forgets decoded blocks, whose numbers are about to change. */
void sb_store_forget_decoded(struct sb_store *s);

/* ---- store-clean.c ---- */

/* Brings the store below its cap. Call it with `mu` held; it may release and take it again. */
int sb_store_clean(struct sb_store *s, bool (*live)(const struct sb_digest *d, void *arg),
	void *arg, struct sb_error *err);

#endif
