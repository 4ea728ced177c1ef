/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_BLOCKS_H
#define SB_TESTS_BLOCKS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zstd.h>

#include <sync/codec/pack.h>

#include "tests/lib/unit.h"

#ifdef TEST_CONFINED
#include <sync/codec/unpack.h>

/* The same tests by a reader whose work a confined child does. */
static inline struct sb_pack_reader *
reader_confined(sb_pack_in_fn in, void *arg, struct sb_error *err)
{
	static struct sb_unpack *u;

	if (!u)
		u = sb_unpack_new(err);
	return u ? sb_pack_reader_confined(u, in, arg, err) : NULL;
}
#define sb_pack_reader_new reader_confined
#endif

/* The blocks of a stream in memory: a sink for the writer and a source for the reader. */
struct blocks {
	pthread_mutex_t mu;
	pthread_cond_t more;
	struct one_block {
		enum sb_pack_codec codec;
		size_t raw_len, len;
		uint8_t *data;
	} * v;
	size_t n, cap;
	size_t next;    /* the source's */
	size_t fail_at; /* the sink or source fails at this block with SB_E_CLOSED;
			   SIZE_MAX: never */
};

static inline void
blocks_init(struct blocks *b)
{
	memset(b, 0, sizeof *b);
	pthread_mutex_init(&b->mu, NULL);
	pthread_cond_init(&b->more, NULL);
	b->fail_at = SIZE_MAX;
}

static inline void
blocks_free(struct blocks *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->v[i].data);
	free(b->v);
	pthread_mutex_destroy(&b->mu);
	pthread_cond_destroy(&b->more);
}

static inline void
blocks_add(struct blocks *b, enum sb_pack_codec codec, size_t raw_len, const void *data, size_t len)
{
	struct one_block *o;

	if (b->n == b->cap) {
		b->cap = b->cap ? 2 * b->cap : 16;
		b->v = realloc(b->v, b->cap * sizeof *b->v);
		assert_non_null(b->v);
	}
	o = &b->v[b->n++];
	*o = (struct one_block){ .codec = codec,
		.raw_len = raw_len,
		.len = len,
		.data = malloc(len + 1) };
	assert_non_null(o->data);
	memcpy(o->data, data, len);
}

static inline int
blocks_out(enum sb_pack_codec codec, size_t raw_len, const void *data, size_t len, void *arg,
	struct sb_error *err)
{
	struct blocks *b = arg;
	int r = 0;

	pthread_mutex_lock(&b->mu);
	if (b->n == b->fail_at)
		r = sb_fail(err, SB_E_CLOSED, "block %zu: the link is gone", b->n);
	else
		blocks_add(b, codec, raw_len, data, len);
	pthread_cond_broadcast(&b->more);
	pthread_mutex_unlock(&b->mu);
	return r;
}

/* Waits until the sink has `n` blocks, at most 10 s. */
static inline void
blocks_wait(struct blocks *b, size_t n)
{
	struct timespec ts;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += 10;
	pthread_mutex_lock(&b->mu);
	while (b->n < n && r == 0)
		r = pthread_cond_timedwait(&b->more, &b->mu, &ts);
	pthread_mutex_unlock(&b->mu);
	assert_int_equal(r, 0);
}

static inline int
blocks_in(enum sb_pack_codec *codec, size_t *raw_len, const void **data, size_t *len, void *arg,
	struct sb_error *err)
{
	struct blocks *b = arg;
	struct one_block *o;

	if (b->next == b->fail_at)
		return sb_fail(err, SB_E_CLOSED, "block %zu: the link is gone", b->next);
	if (b->next == b->n)
		return 0;
	o = &b->v[b->next++];
	*codec = o->codec;
	*raw_len = o->raw_len;
	*data = o->data;
	*len = o->len;
	return 1;
}

/* The stream itself; the caller frees it. */
static inline uint8_t *
blocks_raw(const struct blocks *b, size_t *out_len)
{
	size_t total = 0, at = 0;
	uint8_t *raw;

	for (size_t i = 0; i < b->n; i++)
		total += b->v[i].raw_len;
	raw = malloc(total + 1);
	assert_non_null(raw);
	for (size_t i = 0; i < b->n; at += b->v[i++].raw_len) {
		const struct one_block *o = &b->v[i];

		if (o->codec == SB_PACK_STORED)
			memcpy(raw + at, o->data, o->len);
		else
			assert_int_equal(ZSTD_decompress(raw + at, o->raw_len, o->data, o->len),
				o->raw_len);
	}
	*out_len = total;
	return raw;
}

/* Appends `raw` as stored blocks of `piece` bytes. */
static inline void
blocks_cut(struct blocks *b, const uint8_t *raw, size_t len, size_t piece)
{
	while (len) {
		size_t n = len < piece ? len : piece;

		blocks_add(b, SB_PACK_STORED, n, raw, n);
		raw += n;
		len -= n;
	}
}

/* A writer into `b`. */
static inline struct sb_pack_writer *
blocks_writer(struct blocks *b, int level, size_t block_size)
{
	struct sb_pack_writer_opts o = SB_PACK_WRITER_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_pack_writer *w;

	o.level = level;
	o.block_size = block_size;
	o.out = blocks_out;
	o.arg = b;
	o.jobs = 3;
	w = sb_pack_writer_new(&o, &err);
	assert_non_null(w);
	return w;
}

static inline void
put_whole(struct sb_pack_writer *w, const char *path, const void *data, size_t len)
{
	struct sb_pack_entry e = { .path = path,
		.size = len,
		.file_size = len,
		.kind = SB_PACK_WHOLE };
	struct sb_error err = { 0 };

	assert_ok(sb_pack_writer_begin(w, &e, &err), &err);
	assert_ok(sb_pack_writer_data(w, data, len, &err), &err);
	assert_ok(sb_pack_writer_end(w, &err), &err);
}

/*
 * Reads the whole stream; the last result: 0 at a good end or the failure. `entries`
 * counts what came before.
 */
static inline int
read_all(struct blocks *b, size_t *entries, struct sb_error *err)
{
	sb_auto(sb_pack_reader) struct sb_pack_reader *r = sb_pack_reader_new(blocks_in, b, err);
	struct sb_pack_entry e;
	const void *data;
	ssize_t n;
	int k;

	assert_non_null(r);
	b->next = 0;
	*entries = 0;
	while ((k = sb_pack_reader_next(r, &e, err)) == 1) {
		uint64_t seen = 0;

		while ((n = sb_pack_reader_read(r, &data, err)) > 0)
			seen += (uint64_t)n;
		if (n < 0)
			return (int)n;
		assert_true(seen == e.size);
		++*entries;
	}
	if (k < 0) /* a failure sticks */
		assert_int_equal(sb_pack_reader_next(r, &e, NULL), k);
	return k;
}

#endif
