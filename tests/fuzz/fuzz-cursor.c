/* SPDX-License-Identifier: MIT */
/*
 * The byte cursor: the first input byte of each round chooses a read. No read leaves the input, a
 * bad cursor stays bad and empty-handed, and every varint that was accepted encodes to the bytes it
 * came from or fewer (overlong middle bytes are allowed).
 */
#include <string.h>

#include <base/buf.h>
#include <base/cursor.h>

#include "fuzz.h"

#define BYTES_MAX 64

static void
check_varint(uint64_t v, size_t used)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_cursor back;

	sb_buf_init(&b, 16);
	sb_buf_add_varint(&b, v);
	FUZZ_CHECK(b.failed == 0 && b.len <= used);
	sb_cursor_init(&back, b.data, b.len);
	FUZZ_CHECK(sb_cursor_varint(&back) == v && !back.bad && sb_cursor_left(&back) == 0);
}

static void
check_svarint(int64_t v)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_cursor back;

	sb_buf_init(&b, 16);
	sb_buf_add_svarint(&b, v);
	sb_cursor_init(&back, b.data, b.len);
	FUZZ_CHECK(sb_cursor_svarint(&back) == v && !back.bad);
}

static void
one_read(struct sb_cursor *c, uint8_t what)
{
	size_t before = sb_cursor_left(c), len = 0;
	const uint8_t *p;
	uint64_t v;
	int64_t s;

	switch (what % 7) {
	case 0:
		v = sb_cursor_u8(c);
		FUZZ_CHECK(!c->bad || v == 0);
		break;
	case 1:
		v = sb_cursor_u16(c);
		FUZZ_CHECK(!c->bad || v == 0);
		break;
	case 2:
		v = sb_cursor_u32(c);
		FUZZ_CHECK(!c->bad || v == 0);
		break;
	case 3:
		v = sb_cursor_u64(c);
		FUZZ_CHECK(!c->bad || v == 0);
		break;
	case 4:
		v = sb_cursor_varint(c);
		if (!c->bad)
			check_varint(v, before - sb_cursor_left(c));
		break;
	case 5:
		s = sb_cursor_svarint(c);
		if (!c->bad)
			check_svarint(s);
		break;
	case 6:
		p = sb_cursor_bytes(c, BYTES_MAX, &len);
		FUZZ_CHECK(c->bad == (p == NULL));
		FUZZ_CHECK(c->bad || (len <= BYTES_MAX && p + len == c->p));
		break;
	}
	FUZZ_CHECK(sb_cursor_left(c) <= before);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_cursor c;
	bool was_bad;

	sb_cursor_init(&c, data, len);
	while (sb_cursor_left(&c) > 0) {
		was_bad = c.bad;
		one_read(&c, sb_cursor_u8(&c));
		FUZZ_CHECK(!was_bad || c.bad);
		if (c.bad)
			break;
	}
	return 0;
}
