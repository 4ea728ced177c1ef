/* SPDX-License-Identifier: MIT */
/*
 * Contents are gathered until they make a block, which is compressed by whoever completed
 * it, without the lock. Until a block is on disk its contents are read from memory.
 */
#include "config.h"

#include <sync/codec/store.h>

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sync/codec/store-priv.h>

/*
 * Raw bytes of a block, as zstd cuts them: reading one content decodes all of its block,
 * so more would cost time, and less would cost space.
 */
#define BATCH_RAW (128u << 10)
#define BATCH_ITEMS 4096u
/* A content this large has a block of its own. */
#define ALONE_FROM (64u << 10)
/* Blocks larger than this are not kept decoded. */
#define DECODED_MAX (512u << 10)
#define SEGMENT_MIN (64u << 10)
/* Blocks behind the index that opening may have to look for. */
#define UNINDEXED_MAX 64u

/* ---- batches ---- */

static void
batch_free(struct sb_store_batch *b)
{
	if (!b)
		return;
	sb_buf_free(&b->raw);
	free(b->items);
	free(b);
}

static struct sb_store_batch *
batch_new(struct sb_error *err)
{
	struct sb_store_batch *b = calloc(1, sizeof *b);

	if (b)
		sb_buf_init(&b->raw, SB_STORE_RAW_MAX);
	else
		(void)sb_fail(err, SB_E_NOMEM, "store: out of memory");
	return b;
}

static int
batch_add(struct sb_store_batch *b, const struct sb_digest *d, const void *data, size_t len,
	struct sb_error *err)
{
	size_t off = b->raw.len;

	if (b->n_items == b->items_cap) {
		size_t cap = b->items_cap ? 2 * b->items_cap : 16;
		struct sb_store_item *items = reallocarray(b->items, cap, sizeof *items);

		if (!items)
			return sb_fail(err, SB_E_NOMEM, "store: out of memory");
		b->items = items;
		b->items_cap = cap;
	}
	sb_buf_add(&b->raw, data, len);
	if (b->raw.failed) {
		int r = sb_buf_check(&b->raw, "store", err);

		b->raw.failed = 0;
		return r;
	}
	b->items[b->n_items++] =
		(struct sb_store_item){ .digest = *d, .off = (uint32_t)off, .len = (uint32_t)len };
	return 0;
}

static const struct sb_store_item *
batch_find(const struct sb_store_batch *b, const struct sb_digest *d)
{
	for (size_t i = 0; i < b->n_items; i++)
		if (sb_digest_eq(&b->items[i].digest, d))
			return &b->items[i];
	return NULL;
}

/* The content in memory, if it is there. */
static const struct sb_store_item *
find_in_memory(const struct sb_store *s, const struct sb_digest *d,
	const struct sb_store_batch **out)
{
	const struct sb_store_item *it = s->pending ? batch_find(s->pending, d) : NULL;

	*out = s->pending;
	for (const struct sb_store_batch *b = s->in_flight; b && !it; b = b->next) {
		it = batch_find(b, d);
		*out = b;
	}
	return it;
}

/* ---- writing ---- */

/* The block's bytes, header and payload, into `out`. Without the lock. */
static int
batch_pack(ZSTD_CCtx *cctx, const struct sb_store_batch *b, int level, struct sb_store_block *f,
	struct sb_buf *out, struct sb_error *err)
{
	size_t len = b->raw.len, room = ZSTD_compressBound(len);
	sb_autofree uint8_t *packed = malloc(room ? room : 1);
	size_t n;

	if (!packed || !cctx)
		return sb_fail(err, SB_E_NOMEM, "store: out of memory");
	n = ZSTD_compressCCtx(cctx, packed, room, b->raw.data, len, level);
	f->zstd = !ZSTD_isError(n) && n < len - len / 32;
	f->raw_len = (uint32_t)len;
	f->packed_len = f->zstd ? (uint32_t)n : (uint32_t)len;
	f->n_items = (uint32_t)b->n_items;
	sb_store_block_header(f, b->items, out);
	f->header_len = (uint32_t)out->len;
	sb_buf_add(out, f->zstd ? packed : b->raw.data, f->packed_len);
	return sb_buf_check(out, "store", err);
}

static int
catalog_batch(struct sb_store *s, const struct sb_store_batch *b, const struct sb_store_block *f,
	struct sb_error *err)
{
	uint32_t number;
	int r = sb_store_catalog_add_block(&s->cat, f, &number, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < b->n_items && r >= 0; i++)
		r = sb_store_catalog_add_item(&s->cat, &b->items[i].digest, b->items[i].off,
			b->items[i].len, err);
	if (r < 0)
		sb_store_catalog_truncate(&s->cat, number);
	return r;
}

static void
unlink_batch(struct sb_store *s, const struct sb_store_batch *b)
{
	struct sb_store_batch **p = &s->in_flight;

	while (*p != b)
		p = &(*p)->next;
	*p = b->next;
	pthread_cond_broadcast(&s->written);
}

/*
 * Compresses, writes and frees the batch. With `mu` held; given up while it compresses.
 */
static int
write_batch(struct sb_store *s, struct sb_store_batch *b, struct sb_error *err)
{
	struct sb_store_block f = { 0 };
	ZSTD_CCtx *cctx = sb_steal(&s->spare_cctx);
	sb_auto(sb_buf) struct sb_buf bytes;
	int r;

	sb_buf_init(&bytes, SIZE_MAX / 2);
	b->next = s->in_flight;
	s->in_flight = b;
	pthread_mutex_unlock(&s->mu);
	if (!cctx)
		cctx = ZSTD_createCCtx();
	r = batch_pack(cctx, b, s->opts.level, &f, &bytes, err);
	pthread_mutex_lock(&s->mu);
	if (s->spare_cctx)
		(void)ZSTD_freeCCtx(cctx);
	else
		s->spare_cctx = cctx;
	if (r >= 0)
		r = sb_store_segment_append(s, bytes.data, bytes.len, &f.segment, &f.at, err);
	if (r >= 0)
		r = catalog_batch(s, b, &f, err);
	unlink_batch(s, b);
	batch_free(b);
	return r;
}

int
sb_store_write_pending(struct sb_store *s, struct sb_error *err)
{
	struct sb_store_batch *b = sb_steal(&s->pending);

	return b ? write_batch(s, b, err) : 0;
}

int
sb_store_add_locked(struct sb_store *s, const struct sb_digest *d, const void *data, size_t len,
	struct sb_error *err)
{
	struct sb_store_batch *b;
	bool alone = len >= ALONE_FROM;
	int r;

	b = alone || !s->pending ? batch_new(err) : s->pending;
	if (!b)
		return SB_E_NOMEM;
	r = batch_add(b, d, data, len, err);
	if (r < 0 && b != s->pending)
		batch_free(b);
	if (r < 0)
		return r;
	if (alone)
		return write_batch(s, b, err);
	s->pending = b;
	if (b->raw.len >= BATCH_RAW || b->n_items >= BATCH_ITEMS)
		return sb_store_write_pending(s, err);
	return 0;
}

static bool
has_locked(const struct sb_store *s, const struct sb_digest *d)
{
	const struct sb_store_batch *b;

	return sb_store_catalog_find(&s->cat, d) || find_in_memory(s, d, &b);
}

int
sb_store_add(struct sb_store *s, const struct sb_digest *d, const void *data, size_t len,
	struct sb_error *err)
{
	int r = 0;

	if (len > s->opts.max_file || len > s->opts.cap)
		return 0;
	pthread_mutex_lock(&s->mu);
	if (!has_locked(s, d))
		r = sb_store_add_locked(s, d, data, len, err);
	/* Far beyond the cap already: not all of this will stay anyway. */
	if (r >= 0 && s->bytes > s->opts.cap + s->opts.cap / 4)
		r = sb_store_clean(s, NULL, NULL, err);
	pthread_mutex_unlock(&s->mu);
	return r;
}

bool
sb_store_has(struct sb_store *s, const struct sb_digest *d)
{
	bool has;

	pthread_mutex_lock(&s->mu);
	has = has_locked(s, d);
	pthread_mutex_unlock(&s->mu);
	return has;
}

/* ---- reading ---- */

void
sb_store_forget_decoded(struct sb_store *s)
{
	for (size_t i = 0; i < SB_STORE_DECODED; i++) {
		free(s->decoded[i].raw);
		s->decoded[i] = (struct sb_store_decoded){ 0 };
	}
}

/* Reads and decodes a whole block into `to` (raw_len bytes). */
static int
decode_block(struct sb_store *s, const struct sb_store_block *f, uint8_t *to, struct sb_error *err)
{
	sb_autofree uint8_t *packed = NULL;
	size_t n;
	int r;

	if (!f->zstd)
		return sb_store_block_read(s, f, false, to, err);
	packed = malloc(f->packed_len ? f->packed_len : 1);
	if (!packed)
		return sb_fail(err, SB_E_NOMEM, "store: out of memory");
	r = sb_store_block_read(s, f, false, packed, err);
	if (r < 0)
		return r;
	n = ZSTD_decompressDCtx(s->dctx, to, f->raw_len, packed, f->packed_len);
	if (ZSTD_isError(n) || n != f->raw_len)
		return sb_fail(err, SB_E_CORRUPT, "block of the store is damaged");
	return 0;
}

/* The place for one more decoded block: the one used longest ago. */
static struct sb_store_decoded *
oldest_decoded(struct sb_store *s)
{
	struct sb_store_decoded *d = &s->decoded[0];

	for (size_t i = 1; i < SB_STORE_DECODED; i++)
		if (s->decoded[i].used < d->used)
			d = &s->decoded[i];
	free(d->raw);
	*d = (struct sb_store_decoded){ 0 };
	return d;
}

const uint8_t *
sb_store_decode(struct sb_store *s, uint32_t block, struct sb_error *err)
{
	const struct sb_store_block *f = &s->cat.blocks[block];
	struct sb_store_decoded *d;
	sb_autofree uint8_t *raw = NULL;

	for (size_t i = 0; i < SB_STORE_DECODED; i++) {
		if (!s->decoded[i].raw || s->decoded[i].block != block)
			continue;
		s->decoded[i].used = ++s->clock;
		return s->decoded[i].raw;
	}
	raw = malloc(f->raw_len ? f->raw_len : 1);
	if (!raw) {
		(void)sb_fail(err, SB_E_NOMEM, "store: out of memory");
		return NULL;
	}
	if (decode_block(s, f, raw, err) < 0)
		return NULL;
	d = oldest_decoded(s);
	*d = (struct sb_store_decoded){ .block = block, .raw = sb_steal(&raw), .used = ++s->clock };
	return d->raw;
}

/* Brings the content's bytes into `out`, which has room reserved at `to`. */
static int
read_content(struct sb_store *s, const struct sb_store_item *it, const struct sb_store_batch *b,
	uint8_t *to, struct sb_error *err)
{
	const struct sb_store_block *f;
	struct sb_error local = { 0 };
	const uint8_t *raw;

	if (b) {
		memcpy(to, b->raw.data + it->off, it->len);
		return 0;
	}
	f = &s->cat.blocks[it->block];
	if (f->raw_len == it->len && f->raw_len > DECODED_MAX)
		return decode_block(s, f, to, err);
	raw = sb_store_decode(s, it->block, &local);
	if (!raw)
		return sb_fail(err, local.code, "%s", local.msg);
	memcpy(to, raw + it->off, it->len);
	return 0;
}

/*
 * So that it can be added again. A zero digest is nobody's and keeps the table's chain.
 */
static int
forget_damaged(struct sb_store_item *it, struct sb_error *err)
{
	if (it)
		memset(&it->digest, 0, sizeof it->digest);
	return sb_fail(err, SB_E_NOTFOUND, "content in the store is damaged");
}

static int
get_locked(struct sb_store *s, const struct sb_digest *d, struct sb_buf *out, struct sb_error *err)
{
	const struct sb_store_batch *b = NULL;
	struct sb_store_item *kept = sb_store_catalog_find(&s->cat, d);
	const struct sb_store_item *it = kept;
	struct sb_digest got;
	uint8_t *to;
	int r;

	if (!it)
		it = find_in_memory(s, d, &b);
	if (!it)
		return sb_fail(err, SB_E_NOTFOUND, "content is not in the store");
	out->max = it->len;
	to = sb_buf_reserve(out, it->len);
	if (!to)
		return sb_buf_check(out, "content from the store", err);
	r = read_content(s, it, b, to, err);
	if (r == SB_E_NOMEM)
		return r;
	if (r < 0)
		return forget_damaged(kept, err);
	got = sb_digest_of(to, it->len);
	if (!sb_digest_eq(&got, d))
		return forget_damaged(kept, err);
	sb_buf_grow(out, it->len);
	return 0;
}

int
sb_store_get(struct sb_store *s, const struct sb_digest *d, struct sb_buf *out,
	struct sb_error *err)
{
	int r;

	sb_buf_init(out, 0);
	pthread_mutex_lock(&s->mu);
	r = get_locked(s, d, out, err);
	pthread_mutex_unlock(&s->mu);
	return r;
}

uint64_t
sb_store_bytes(const struct sb_store *s)
{
	struct sb_store *m = (struct sb_store *)s;
	uint64_t bytes;

	pthread_mutex_lock(&m->mu);
	bytes = s->bytes;
	pthread_mutex_unlock(&m->mu);
	return bytes;
}

/* ---- life ---- */

int
sb_store_flush(struct sb_store *s, bool (*live)(const struct sb_digest *d, void *arg), void *arg,
	struct sb_error *err)
{
	bool many;
	int r;

	pthread_mutex_lock(&s->mu);
	r = sb_store_write_pending(s, err);
	while (s->in_flight)
		pthread_cond_wait(&s->written, &s->mu);
	many = s->cat.n_blocks > s->indexed_blocks + UNINDEXED_MAX;
	/* Asking about every content is for when much was added. */
	if (r >= 0 && (many || s->bytes > s->opts.cap))
		r = sb_store_clean(s, live, arg, err);
	if (r >= 0 && s->cat.n_blocks > s->indexed_blocks + UNINDEXED_MAX)
		r = sb_store_index_save(s, err);
	pthread_mutex_unlock(&s->mu);
	return r;
}

static int
load(struct sb_store *s, struct sb_error *err)
{
	sb_autofree uint64_t *covered = NULL;
	int r = sb_store_segments_open(s, err);

	if (r < 0)
		return r;
	covered = calloc(s->n_segments + 1, sizeof *covered);
	if (!covered)
		return sb_fail(err, SB_E_NOMEM, "store: out of memory");
	sb_store_index_load(s, covered);
	for (size_t i = 0; i < s->n_segments && r >= 0; i++)
		if (covered[i] < s->segments[i].size)
			r = sb_store_segment_scan(s, &s->segments[i], covered[i], err);
	return r;
}

struct sb_store *
sb_store_open(int dirfd, const struct sb_store_opts *opts, struct sb_error *err)
{
	struct sb_store_opts o = SB_STORE_OPTS_INIT;
	struct sb_store *s = calloc(1, sizeof *s);

	if (!s) {
		(void)sb_fail(err, SB_E_NOMEM, "store: out of memory");
		return NULL;
	}
	assert(!opts || opts->size <= sizeof o);
	if (opts)
		memcpy(&o, opts, opts->size);
	if (o.max_file > SB_STORE_RAW_MAX)
		o.max_file = SB_STORE_RAW_MAX;
	s->opts = o;
	s->segment_size = o.cap / 16 > SEGMENT_MIN ? o.cap / 16 : SEGMENT_MIN;
	(void)pthread_mutex_init(&s->mu, NULL);
	(void)pthread_cond_init(&s->written, NULL);
	s->dctx = ZSTD_createDCtx();
	s->dirfd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
	if (s->dirfd < 0)
		(void)sb_fail_errno(err, "open the store");
	else if (!s->dctx)
		(void)sb_fail(err, SB_E_NOMEM, "zstd decoder: out of memory");
	else if (load(s, err) >= 0)
		return s;
	sb_store_free(s);
	return NULL;
}

void
sb_store_free(struct sb_store *s)
{
	if (!s)
		return;
	if (s->dirfd >= 0)
		(void)sb_store_flush(s, NULL, NULL, NULL);
	batch_free(s->pending);
	sb_store_forget_decoded(s);
	sb_store_catalog_free(&s->cat);
	sb_store_segments_close(s);
	(void)ZSTD_freeDCtx(s->dctx);
	(void)ZSTD_freeCCtx(s->spare_cctx);
	(void)pthread_mutex_destroy(&s->mu);
	(void)pthread_cond_destroy(&s->written);
	if (s->dirfd >= 0)
		(void)close(s->dirfd);
	free(s);
}
