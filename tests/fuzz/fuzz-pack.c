/* SPDX-License-Identifier: MIT */
/*
 * The data stream of a peer. The first byte says how the rest becomes blocks. Below 128:
 * stored blocks of its low 6 bits' number of bytes (0: one block), so that the tar parser
 * is reached; with bit 64 the checksums of tar headers are put right first. From 128 on:
 * blocks with a header of 7 bytes: codec, u24 raw length, u24 length. Whatever comes, the
 * reader ends, gives no more than it got, and says only 0 or SB_E_PROTO.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <base/cursor.h>
#include <sync/codec/pack.h>

#include "fuzz.h"

struct input {
	struct sb_cursor c;
	size_t piece; /* 0: blocks with headers */
	uint64_t raw; /* given so far */
};

static uint32_t
take_u24(struct sb_cursor *c)
{
	uint32_t lo = sb_cursor_u16(c);

	return lo | (uint32_t)sb_cursor_u8(c) << 16;
}

static int
next_block(enum sb_pack_codec *codec, size_t *raw_len, const void **data, size_t *len, void *arg,
	struct sb_error *err)
{
	struct input *in = arg;
	size_t left = sb_cursor_left(&in->c);

	(void)err;
	if (!left)
		return 0;
	if (in->piece) {
		*codec = SB_PACK_STORED;
		*len = left < in->piece ? left : in->piece;
		*raw_len = *len;
	} else {
		*codec = (enum sb_pack_codec)sb_cursor_u8(&in->c);
		*raw_len = take_u24(&in->c);
		*len = take_u24(&in->c);
		left = sb_cursor_left(&in->c);
		if (*len > left)
			*len = left;
	}
	*data = sb_cursor_take(&in->c, *len);
	in->raw += *raw_len;
	return 1;
}

static void
fix_checksums(uint8_t *p, size_t len)
{
	for (; len >= 512; p += 512, len -= 512) {
		unsigned sum = 0;

		if (memcmp(p + 257, "ustar", 5) != 0)
			continue;
		memset(p + 148, ' ', 8);
		for (size_t i = 0; i < 512; i++)
			sum += p[i];
		(void)snprintf((char *)p + 148, 8, "%06o", sum);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = { 0 };
	struct sb_error err = { 0 };
	struct sb_pack_entry e;
	struct sb_pack_reader *r;
	uint64_t seen = 0;
	uint8_t *copy;
	int k;

	if (len < 1)
		return 0;
	copy = malloc(len);
	FUZZ_CHECK(copy);
	memcpy(copy, data, len);
	sb_cursor_init(&in.c, copy + 1, len - 1);
	if (data[0] < 128)
		in.piece = data[0] & 63 ? data[0] & 63 : SB_PACK_BLOCK_MAX;
	if (data[0] < 128 && (data[0] & 64))
		fix_checksums(copy + 1, len - 1);
	r = sb_pack_reader_new(next_block, &in, &err);
	FUZZ_CHECK(r);
	while ((k = sb_pack_reader_next(r, &e, &err)) == 1) {
		const void *p;
		ssize_t n;

		FUZZ_CHECK(e.path && e.path[0] && e.path[0] != '/' && !strstr(e.path, "//"));
		FUZZ_CHECK(e.kind <= SB_PACK_SPARSE);
		while ((n = sb_pack_reader_read(r, &p, &err)) > 0) {
			volatile uint8_t last = ((const uint8_t *)p)[n - 1];

			(void)last;
			seen += (uint64_t)n;
		}
		FUZZ_CHECK(n == 0 || n == SB_E_PROTO);
	}
	FUZZ_CHECK(k == 0 || k == SB_E_PROTO);
	FUZZ_CHECK(seen <= in.raw);
	sb_pack_reader_free(r);
	free(copy);
	return 0;
}
