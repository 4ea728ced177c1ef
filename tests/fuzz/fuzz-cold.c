/* SPDX-License-Identifier: MIT */
/*
 * Indexes and frames of archives. The first byte chooses: a frame that is decoded (what comes out
 * encodes and decodes to the same); an index as it lies in the store; the JSON of one, which is
 * made into an index first. What was accepted is consistent, and encodes to something that is
 * accepted again.
 */
#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>

#include <base/str.h>
#include <host/cold/coldindex.h>

#include "fuzz.h"

static struct sb_coldkeys keys;

static void
frame(const uint8_t *data, size_t len, const struct sb_coldkey *key)
{
	static uint8_t out[1 << 16], back[1 << 16];
	size_t size = len > 1 ? (size_t)data[0] << 8 | data[1] : 0;
	struct sb_buf b;

	if (len < 2 || sb_coldframe_decode(data + 2, len - 2, key, out, size, NULL) < 0)
		return;
	sb_buf_init(&b, SB_COLDFRAME_STORED_MAX);
	FUZZ_CHECK(sb_coldframe_encode(out, size, key, &b, NULL) == 0);
	FUZZ_CHECK(sb_coldframe_decode(b.data, b.len, key, back, size, NULL) == 0);
	FUZZ_CHECK(memcmp(out, back, size) == 0);
	sb_buf_free(&b);
}

static void
consistent(const struct sb_coldindex *x)
{
	FUZZ_CHECK(json_is_object(x->session));
	for (size_t i = 0; i < x->n_frames; i++) {
		const struct sb_coldindex_frame *f = &x->frames[i];

		FUZZ_CHECK(f->part < x->n_parts && f->size > 0 && f->stored > 0);
		FUZZ_CHECK(f->size <= SB_COLDFRAME_PLAIN_MAX);
		FUZZ_CHECK(f->at + f->stored <= x->parts[f->part].size);
	}
	for (size_t i = 0; i < x->n_streams; i++) {
		uint64_t sum = 0;

		for (size_t k = 0; k < x->streams[i].n; k++) {
			FUZZ_CHECK(x->streams[i].frames[k] < x->n_frames);
			sum += x->frames[x->streams[i].frames[k]].size;
		}
		FUZZ_CHECK(sum == x->streams[i].size);
	}
}

static void
index_object(const uint8_t *data, size_t len)
{
	struct sb_coldindex x = { 0 }, y = { 0 };
	struct sb_buf b;

	if (sb_coldindex_decode(data, len, &keys, &x, NULL) < 0) {
		FUZZ_CHECK(!x.session && !x.streams && !x.parts && !x.frames);
		return;
	}
	consistent(&x);
	sb_buf_init(&b, SB_COLDINDEX_OBJECT_MAX);
	FUZZ_CHECK(sb_coldindex_encode(&x, x.key[0] ? &keys.v[0] : NULL, &b, NULL) == 0);
	FUZZ_CHECK(sb_coldindex_decode(b.data, b.len, &keys, &y, NULL) == 0);
	FUZZ_CHECK(json_equal(x.session, y.session) && x.n_frames == y.n_frames);
	FUZZ_CHECK(x.n_streams == y.n_streams && x.n_parts == y.n_parts);
	sb_coldindex_free(&x);
	sb_coldindex_free(&y);
	sb_buf_free(&b);
}

/* The text in an envelope that is right, so that the fuzzer gets past it. */
static void
index_text(const uint8_t *data, size_t len)
{
	struct sb_buf one, body, all;
	uint8_t sum[SB_COLDFRAME_DIGEST];
	char hex[2 * SB_COLDFRAME_DIGEST + 1];

	sb_buf_init(&one, SB_COLDFRAME_STORED_MAX);
	sb_buf_init(&body, SB_COLDFRAME_STORED_MAX);
	sb_buf_init(&all, SB_COLDFRAME_STORED_MAX);
	if (len > 0 && sb_coldframe_encode(data, len, NULL, &one, NULL) == 0) {
		sb_buf_add_u32(&body, (uint32_t)one.len);
		sb_buf_add_u32(&body, (uint32_t)len);
		sb_buf_add(&body, one.data, one.len);
		FUZZ_CHECK(sb_coldframe_digest(body.data, body.len, sum, NULL) == 0);
		sb_buf_addf(&all, "sbcold 1 - %zu %s\n", len, sb_str_hex(sum, sizeof sum, hex));
		sb_buf_add(&all, body.data, body.len);
		index_object(all.data, all.len);
	}
	sb_buf_free(&one);
	sb_buf_free(&body);
	sb_buf_free(&all);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (keys.n == 0 &&
		sb_coldkey_parse(&keys,
			"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
			NULL) < 0)
		abort();
	if (len == 0)
		return 0;
	switch (data[0]) {
	case 'f': frame(data + 1, len - 1, NULL); break;
	case 'e': frame(data + 1, len - 1, &keys.v[0]); break;
	case 'j': index_text(data + 1, len - 1); break;
	default: index_object(data, len); break;
	}
	return 0;
}
