/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/protocol/gzip.h>

#include <limits.h>

#include <zlib.h>

#define WINDOW_GZIP (15 + 16)
#define PIECE (64 * 1024)

/*
 * The next piece of room, no larger than what the ceiling leaves; NULL: none (sticky only for
 * memory).
 */
static uint8_t *
room(struct sb_buf *out, size_t *size)
{
	size_t left = out->max - out->len;

	*size = left < PIECE ? left : PIECE;
	return *size > 0 ? sb_buf_reserve(out, *size) : NULL;
}

static int
inflate_all(z_stream *z, struct sb_buf *out, struct sb_error *err)
{
	uint8_t spare;
	size_t size;
	int r = Z_OK;

	while (r != Z_STREAM_END) {
		uint8_t *p = room(out, &size);

		if (!p && size > 0)
			return sb_buf_check(out, "gzip data", err);
		/* At the ceiling the stream may still end, but not hold another byte. */
		z->next_out = p ? p : &spare;
		z->avail_out = p ? (uInt)size : 1;
		r = inflate(z, Z_NO_FLUSH);
		if (!p && z->avail_out == 0)
			return sb_fail(err, SB_E_LIMIT, "gzip data is larger than %zu bytes",
				out->max);
		if (p)
			sb_buf_grow(out, size - z->avail_out);
		if (r == Z_BUF_ERROR || (r == Z_OK && z->avail_in == 0 && z->avail_out > 0))
			return sb_fail(err, SB_E_INVAL, "gzip data is cut off");
		if (r == Z_MEM_ERROR)
			return sb_fail(err, SB_E_NOMEM, "out of memory while inflating");
		if (r != Z_OK && r != Z_STREAM_END)
			return sb_fail(err, SB_E_INVAL, "gzip data is damaged");
	}
	if (z->avail_in > 0)
		return sb_fail(err, SB_E_INVAL, "%u bytes behind the end of the gzip data",
			z->avail_in);
	return 0;
}

int
sb_rpc_gzip_inflate(const void *data, size_t len, struct sb_buf *out, struct sb_error *err)
{
	z_stream z = { 0 };
	int r;

	if (len > UINT_MAX)
		return sb_fail(err, SB_E_LIMIT, "gzip data of %zu bytes is too large", len);
	if (inflateInit2(&z, WINDOW_GZIP) != Z_OK)
		return sb_fail(err, SB_E_NOMEM, "out of memory while inflating");
	z.next_in = (Bytef *)(uintptr_t)data;
	z.avail_in = (uInt)len;
	r = inflate_all(&z, out, err);
	(void)inflateEnd(&z);
	return r;
}

int
sb_rpc_gzip_deflate(const void *data, size_t len, struct sb_buf *out, struct sb_error *err)
{
	z_stream z = { 0 };
	uint8_t *p;
	size_t bound;
	int r;

	if (len > INT_MAX)
		return sb_fail(err, SB_E_LIMIT, "%zu bytes are too many to compress at once", len);
	if (deflateInit2(&z, 1, Z_DEFLATED, WINDOW_GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return sb_fail(err, SB_E_NOMEM, "out of memory while compressing");
	bound = deflateBound(&z, len);
	p = sb_buf_reserve(out, bound);
	if (!p) {
		(void)deflateEnd(&z);
		return sb_buf_check(out, "gzip data", err);
	}
	z.next_in = (Bytef *)(uintptr_t)data;
	z.avail_in = (uInt)len;
	z.next_out = p;
	z.avail_out = (uInt)bound;
	r = deflate(&z, Z_FINISH);
	sb_buf_grow(out, bound - z.avail_out);
	(void)deflateEnd(&z);
	return r == Z_STREAM_END ? 0 : sb_fail(err, SB_E_SYS, "compressing failed");
}
