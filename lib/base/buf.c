/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/buf.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t empty_text[1];

void
sb_buf_init(struct sb_buf *b, size_t max)
{
	/* No block is larger than PTRDIFF_MAX, and below it sizes can be added without a check. */
	if (max > PTRDIFF_MAX - 1)
		max = PTRDIFF_MAX - 1;
	*b = (struct sb_buf){ .data = empty_text, .max = max };
}

void
sb_buf_free(struct sb_buf *b)
{
	if (b->cap)
		free(b->data);
	sb_buf_init(b, b->max);
}

void
sb_buf_reset(struct sb_buf *b)
{
	b->len = 0;
	b->failed = 0;
	if (b->cap)
		b->data[0] = 0;
}

int
sb_buf_check(const struct sb_buf *b, const char *what, struct sb_error *err)
{
	if (!b->failed)
		return 0;
	if (b->failed == SB_E_NOMEM)
		return sb_fail(err, SB_E_NOMEM, "%s: out of memory", what);
	return sb_fail(err, SB_E_FULL, "%s: larger than %zu bytes", what, b->max);
}

uint8_t *
sb_buf_reserve(struct sb_buf *b, size_t len)
{
	size_t want;
	uint8_t *grown;

	if (b->failed)
		return NULL;
	if (len > b->max || b->len > b->max - len) {
		b->failed = SB_E_FULL;
		return NULL;
	}
	if (b->cap && b->len + len < b->cap)
		return b->data + b->len;
	want = b->cap ? b->cap * 2 : 64;
	if (want < b->len + len + 1)
		want = b->len + len + 1;
	if (want > b->max + 1)
		want = b->max + 1;
	grown = realloc(b->cap ? b->data : NULL, want);
	if (!grown) {
		b->failed = SB_E_NOMEM;
		return NULL;
	}
	b->data = grown;
	b->cap = want;
	b->data[b->len] = 0;
	return b->data + b->len;
}

void
sb_buf_grow(struct sb_buf *b, size_t len)
{
	assert(b->len + len < b->cap);
	b->len += len;
	b->data[b->len] = 0;
}

void
sb_buf_add(struct sb_buf *b, const void *data, size_t len)
{
	uint8_t *to = sb_buf_reserve(b, len);

	if (!to || !len)
		return;
	memcpy(to, data, len);
	sb_buf_grow(b, len);
}

void
sb_buf_add_str(struct sb_buf *b, const char *s)
{
	sb_buf_add(b, s, strlen(s));
}

void
sb_buf_add_char(struct sb_buf *b, char c)
{
	sb_buf_add(b, &c, 1);
}

void
sb_buf_vaddf(struct sb_buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;
	uint8_t *to;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0) {
		b->failed = SB_E_NOMEM;
		return;
	}
	to = sb_buf_reserve(b, (size_t)n);
	if (!to)
		return;
	(void)vsnprintf((char *)to, (size_t)n + 1, fmt, ap);
	sb_buf_grow(b, (size_t)n);
}

void
sb_buf_addf(struct sb_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	sb_buf_vaddf(b, fmt, ap);
	va_end(ap);
}

void
sb_buf_consume(struct sb_buf *b, size_t len)
{
	assert(len <= b->len);
	if (!len)
		return;
	memmove(b->data, b->data + len, b->len - len);
	b->len -= len;
	b->data[b->len] = 0;
}

uint8_t *
sb_buf_detach(struct sb_buf *b, size_t *out_len)
{
	uint8_t *data;

	if (!b->cap && !sb_buf_reserve(b, 0))
		return NULL;
	data = b->data;
	if (out_len)
		*out_len = b->len;
	sb_buf_init(b, b->max);
	return data;
}

void
sb_buf_add_u8(struct sb_buf *b, uint8_t v)
{
	sb_buf_add(b, &v, 1);
}

static void
add_le(struct sb_buf *b, uint64_t v, size_t bytes)
{
	uint8_t le[8];

	for (size_t i = 0; i < bytes; i++)
		le[i] = (uint8_t)(v >> (8 * i));
	sb_buf_add(b, le, bytes);
}

void
sb_buf_add_u16(struct sb_buf *b, uint16_t v)
{
	add_le(b, v, 2);
}

void
sb_buf_add_u32(struct sb_buf *b, uint32_t v)
{
	add_le(b, v, 4);
}

void
sb_buf_add_u64(struct sb_buf *b, uint64_t v)
{
	add_le(b, v, 8);
}

void
sb_buf_add_varint(struct sb_buf *b, uint64_t v)
{
	uint8_t out[10];
	size_t n = 0;

	while (v >= 0x80) {
		out[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	out[n++] = (uint8_t)v;
	sb_buf_add(b, out, n);
}

void
sb_buf_add_svarint(struct sb_buf *b, int64_t v)
{
	sb_buf_add_varint(b, ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0));
}

void
sb_buf_add_bytes(struct sb_buf *b, const void *data, size_t len)
{
	sb_buf_add_varint(b, len);
	sb_buf_add(b, data, len);
}
