/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/cursor.h>

void
sb_cursor_init(struct sb_cursor *c, const void *data, size_t len)
{
	c->p = data;
	c->end = c->p + len;
	c->bad = false;
}

size_t
sb_cursor_left(const struct sb_cursor *c)
{
	return (size_t)(c->end - c->p);
}

const uint8_t *
sb_cursor_take(struct sb_cursor *c, size_t len)
{
	const uint8_t *at = c->p;

	if (c->bad || len > sb_cursor_left(c)) {
		c->bad = true;
		c->p = c->end;
		return NULL;
	}
	c->p += len;
	return at;
}

static uint64_t
take_le(struct sb_cursor *c, size_t bytes)
{
	const uint8_t *p = sb_cursor_take(c, bytes);
	uint64_t v = 0;

	if (!p)
		return 0;
	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

uint8_t
sb_cursor_u8(struct sb_cursor *c)
{
	return (uint8_t)take_le(c, 1);
}

uint16_t
sb_cursor_u16(struct sb_cursor *c)
{
	return (uint16_t)take_le(c, 2);
}

uint32_t
sb_cursor_u32(struct sb_cursor *c)
{
	return (uint32_t)take_le(c, 4);
}

uint64_t
sb_cursor_u64(struct sb_cursor *c)
{
	return take_le(c, 8);
}

uint64_t
sb_cursor_varint(struct sb_cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte;

		if (c->bad || c->p == c->end)
			break;
		byte = *c->p++;
		if (shift == 63 && byte > 1)
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	c->bad = true;
	c->p = c->end;
	return 0;
}

int64_t
sb_cursor_svarint(struct sb_cursor *c)
{
	uint64_t z = sb_cursor_varint(c);

	return (int64_t)(z >> 1) ^ -(int64_t)(z & 1);
}

const uint8_t *
sb_cursor_bytes(struct sb_cursor *c, size_t max, size_t *out_len)
{
	uint64_t len = sb_cursor_varint(c);

	*out_len = 0;
	if (c->bad || len > max) {
		c->bad = true;
		c->p = c->end;
		return NULL;
	}
	*out_len = (size_t)len;
	return sb_cursor_take(c, (size_t)len);
}
