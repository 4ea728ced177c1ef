/* SPDX-License-Identifier: MIT */
/*
 * Segments: files "pack-" and the id in 8 hex digits, appended to. A block in one, all
 * numbers little-endian:
 *
 *    0  "SBF1"
 *    4  u32 n          contents, at least 1
 *    8  u32 raw_len
 *   12  u32 packed_len
 *   16  u8 codec       0 stored, 1 zstd
 *   17  7 zero bytes
 *   24  u64            XXH3-64 of the bytes before and of the items
 *   32  n items        digest (16), u32 length; one after the other in the raw bytes
 *       packed_len bytes
 *
 * A block is written with one call at the end of the file; whatever a crash leaves of it
 * is cut off when the segment is scanned. Payloads carry no checksum, contents have their
 * digest.
 */
#include "config.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/cursor.h>

#include <sync/codec/store-priv.h>

#define BLOCK_MAGIC "SBF1"
#define BLOCK_HEAD 32u
#define BLOCK_SUM_AT 24u
#define ITEM_LEN 20u

#define NAME_LEN 14
#define SKIP_MAX 64

static void
segment_name(uint32_t id, char out[NAME_LEN])
{
	(void)snprintf(out, NAME_LEN, "pack-%08" PRIx32, id);
}

static bool
parse_name(const char *name, uint32_t *out)
{
	uint32_t id = 0;

	if (strncmp(name, "pack-", 5) != 0 || strlen(name) != NAME_LEN - 1)
		return false;
	for (const char *p = name + 5; *p; p++) {
		const char *at = strchr("0123456789abcdef", *p);

		if (!at)
			return false;
		id = id << 4 | (uint32_t)(at - "0123456789abcdef");
	}
	*out = id;
	return id != 0;
}

/* ---- blocks ---- */

void
sb_store_block_header(const struct sb_store_block *f, const struct sb_store_item *items,
	struct sb_buf *out)
{
	static const uint8_t zeros[7];
	size_t start = out->len;
	XXH64_hash_t sum;

	sb_buf_add(out, BLOCK_MAGIC, 4);
	sb_buf_add_u32(out, f->n_items);
	sb_buf_add_u32(out, f->raw_len);
	sb_buf_add_u32(out, f->packed_len);
	sb_buf_add_u8(out, f->zstd);
	sb_buf_add(out, zeros, sizeof zeros);
	sb_buf_add_u64(out, 0);
	for (uint32_t i = 0; i < f->n_items; i++) {
		sb_buf_add(out, items[i].digest.b, sizeof items[i].digest.b);
		sb_buf_add_u32(out, items[i].len);
	}
	if (out->failed)
		return;
	sum = XXH3_64bits(out->data + start, out->len - start);
	for (unsigned i = 0; i < 8; i++)
		out->data[start + BLOCK_SUM_AT + i] = (uint8_t)(sum >> (8 * i));
}

static int
read_at(int fd, void *to, size_t len, uint64_t at, struct sb_error *err)
{
	uint8_t *p = to;

	while (len) {
		ssize_t n = pread(fd, p, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sb_fail_errno(err, "read a segment of the store");
		if (n == 0)
			return sb_fail(err, SB_E_CORRUPT, "segment of the store ends too early");
		p += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static struct sb_store_segment *
find_segment(struct sb_store *s, uint32_t id)
{
	for (size_t i = s->n_segments; i-- > 0;)
		if (s->segments[i].id == id)
			return &s->segments[i];
	return NULL;
}

int
sb_store_block_read(struct sb_store *s, const struct sb_store_block *f, bool whole, void *to,
	struct sb_error *err)
{
	const struct sb_store_segment *g = find_segment(s, f->segment);

	if (!g)
		return sb_fail(err, SB_E_NOTFOUND, "segment %08" PRIx32 " is gone", f->segment);
	if (whole)
		return read_at(g->fd, to, (size_t)f->header_len + f->packed_len, f->at, err);
	return read_at(g->fd, to, f->packed_len, f->at + f->header_len, err);
}

/* ---- scan ---- */

/* Reads the fixed part. False when no block can be there. */
static bool
parse_head(const uint8_t *head, uint64_t left, struct sb_store_block *f)
{
	struct sb_cursor c;
	uint8_t codec;

	sb_cursor_init(&c, head, BLOCK_HEAD);
	if (memcmp(sb_cursor_take(&c, 4), BLOCK_MAGIC, 4) != 0)
		return false;
	f->n_items = sb_cursor_u32(&c);
	f->raw_len = sb_cursor_u32(&c);
	f->packed_len = sb_cursor_u32(&c);
	codec = sb_cursor_u8(&c);
	if (codec > 1 || !f->n_items || f->n_items > SB_STORE_ITEMS_MAX ||
		f->raw_len > SB_STORE_RAW_MAX || (!codec && f->packed_len != f->raw_len))
		return false;
	f->zstd = codec == 1;
	f->header_len = BLOCK_HEAD + f->n_items * ITEM_LEN;
	return (uint64_t)f->header_len + f->packed_len <= left;
}

/* Takes the block with its items into the catalog. `header` is all of it. */
static int
take_block(struct sb_store *s, const struct sb_store_block *f, uint8_t *header,
	struct sb_error *err)
{
	struct sb_cursor c;
	uint64_t sum, off = 0;
	uint32_t number;
	int r;

	sb_cursor_init(&c, header + BLOCK_SUM_AT, f->header_len - BLOCK_SUM_AT);
	sum = sb_cursor_u64(&c);
	memset(header + BLOCK_SUM_AT, 0, 8);
	if (XXH3_64bits(header, f->header_len) != sum)
		return sb_fail(err, SB_E_CORRUPT, "block of the store is damaged");
	r = sb_store_catalog_add_block(&s->cat, f, &number, err);
	for (uint32_t i = 0; i < f->n_items && r >= 0; i++) {
		struct sb_digest d;
		uint32_t len;

		memcpy(d.b, sb_cursor_take(&c, sizeof d.b), sizeof d.b);
		len = sb_cursor_u32(&c);
		if (len > f->raw_len - off)
			r = sb_fail(err, SB_E_CORRUPT, "contents of a block exceed it");
		else
			r = sb_store_catalog_add_item(&s->cat, &d, (uint32_t)off, len, err);
		off += len;
	}
	if (r < 0)
		sb_store_catalog_truncate(&s->cat, number);
	return r;
}

int
sb_store_segment_scan(struct sb_store *s, struct sb_store_segment *g, uint64_t from,
	struct sb_error *err)
{
	sb_autofree uint8_t *header = malloc(BLOCK_HEAD + SB_STORE_ITEMS_MAX * ITEM_LEN);
	int r = 0;

	if (!header)
		return sb_fail(err, SB_E_NOMEM, "store: out of memory");
	while (g->size - from >= BLOCK_HEAD) {
		struct sb_store_block f = { .segment = g->id, .at = from };

		r = read_at(g->fd, header, BLOCK_HEAD, from, err);
		if (r < 0 || !parse_head(header, g->size - from, &f))
			break;
		r = read_at(g->fd, header, f.header_len, from, err);
		if (r >= 0)
			r = take_block(s, &f, header, err);
		if (r < 0)
			break;
		from += (uint64_t)f.header_len + f.packed_len;
	}
	if (r < 0 && r != SB_E_CORRUPT)
		return r;
	if (from < g->size) {
		if (ftruncate(g->fd, (off_t)from) < 0)
			return sb_fail_errno(err, "cut a segment of the store");
		s->bytes -= g->size - from;
		g->size = from;
	}
	return 0;
}

/* ---- files ---- */

static int
by_id(const void *a, const void *b)
{
	const struct sb_store_segment *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int
add_segment(struct sb_store *s, uint32_t id, int flags, struct sb_error *err)
{
	char name[NAME_LEN];
	sb_autoclose int fd = -1;
	struct stat st;

	if (s->n_segments == SB_STORE_SEGMENTS_MAX)
		return sb_fail(err, SB_E_LIMIT, "store: too many segments");
	segment_name(id, name);
	fd = openat(s->dirfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_fail_errno(err, "open %s of the store", name);
	if (!S_ISREG(st.st_mode))
		return sb_fail(err, SB_E_CORRUPT, "%s of the store is no file", name);
	s->segments[s->n_segments++] = (struct sb_store_segment){ .id = id,
		.fd = sb_steal_fd(&fd),
		.size = (uint64_t)st.st_size };
	s->bytes += (uint64_t)st.st_size;
	return 0;
}

int
sb_store_segments_open(struct sb_store *s, struct sb_error *err)
{
	sb_autoclose int fd = openat(s->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct sb_error why = { 0 };
	struct dirent *e;
	uint32_t id;
	int r;

	s->segments = calloc(SB_STORE_SEGMENTS_MAX, sizeof *s->segments);
	if (!s->segments)
		return sb_fail(err, SB_E_NOMEM, "store: out of memory");
	if (!dir)
		return sb_fail_errno(err, "read the directory of the store");
	fd = -1; /* the stream's now */
	while ((e = readdir(dir))) {
		if (!parse_name(e->d_name, &id))
			continue;
		r = add_segment(s, id, 0, &why);
		if (r == SB_E_CORRUPT || (r < 0 && why.sys == ELOOP))
			(void)unlinkat(s->dirfd, e->d_name, 0);
		/* Trouble of this process, not of the segment: what it holds is not lost. */
		else if (r < 0 && (why.sys == EMFILE || why.sys == ENFILE || why.sys == ENOMEM))
			return sb_fail(err, r, "%s", why.msg);
	}
	qsort(s->segments, s->n_segments, sizeof *s->segments, by_id);
	return 0;
}

/* The next free number; one that could not be opened may still have its name. */
int
sb_store_segment_begin(struct sb_store *s, struct sb_error *err)
{
	uint32_t id = s->n_segments ? s->segments[s->n_segments - 1].id : 0;
	int r = SB_E_EXISTS;

	for (int tries = 0; tries < SKIP_MAX && r == SB_E_EXISTS; tries++) {
		if (++id == 0)
			return sb_fail(err, SB_E_LIMIT, "store: out of segment numbers");
		r = add_segment(s, id, O_CREAT | O_EXCL, err);
	}
	return r;
}

int
sb_store_segment_append(struct sb_store *s, const void *block, size_t len, uint32_t *out_id,
	uint64_t *out_at, struct sb_error *err)
{
	struct sb_store_segment *g = s->n_segments ? &s->segments[s->n_segments - 1] : NULL;
	const uint8_t *p = block;
	size_t done = 0;
	int r;

	if (!g || g->size >= s->segment_size) {
		r = sb_store_segment_begin(s, err);
		if (r < 0)
			return r;
		g = &s->segments[s->n_segments - 1];
	}
	while (done < len) {
		ssize_t n = pwrite(g->fd, p + done, len - done, (off_t)(g->size + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			r = sb_fail_errno(err, "write to the store");
			(void)ftruncate(g->fd, (off_t)g->size);
			return r;
		}
		done += (size_t)n;
	}
	*out_id = g->id;
	*out_at = g->size;
	g->size += len;
	s->bytes += len;
	return 0;
}

void
sb_store_segment_drop(struct sb_store *s, size_t i)
{
	struct sb_store_segment g = s->segments[i];
	char name[NAME_LEN];

	sb_store_index_remove(s);
	segment_name(g.id, name);
	(void)unlinkat(s->dirfd, name, 0);
	(void)close(g.fd);
	s->bytes -= g.size;
	memmove(&s->segments[i], &s->segments[i + 1],
		(s->n_segments - i - 1) * sizeof *s->segments);
	s->n_segments--;
	sb_store_forget_decoded(s);
	sb_store_catalog_drop_segment(&s->cat, g.id);
}

void
sb_store_segments_close(struct sb_store *s)
{
	for (size_t i = 0; i < s->n_segments; i++)
		(void)close(s->segments[i].fd);
	free(s->segments);
	s->segments = NULL;
	s->n_segments = 0;
}
