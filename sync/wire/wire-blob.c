/* SPDX-License-Identifier: MIT */
/* Blobs: what is larger than a frame, compressed and cut into frames of one type. */
#include "config.h"

#include <sync/wire/wire.h>

#include <stdlib.h>

#include <zstd.h>

#include <base/cursor.h>
#include <base/work.h>

#define PIECE (512u << 10)
#define STEP (1u << 20)
#define WINDOW_LOG 27 /* what our level needs at most */

/* Blob frame: u8 last; the first one begins with u64 raw length, u64 compressed length. */
int
sb_wire_send_blob(struct sb_wire *w, uint8_t type, const void *data, size_t len,
	struct sb_error *err)
{
	size_t bound = ZSTD_compressBound(len);
	sb_autofree uint8_t *z = malloc(bound + 16);
	size_t n, at = 0;
	int r;

	if (!z)
		return sb_fail(err, SB_E_NOMEM, "blob of %zu bytes: out of memory", len);
	n = ZSTD_compress(z + 16, bound, data, len, 3);
	if (ZSTD_isError(n))
		return sb_fail(err, SB_E_NOMEM, "compress %zu bytes: %s", len,
			ZSTD_getErrorName(n));
	for (int i = 0; i < 8; i++) {
		z[i] = (uint8_t)((uint64_t)len >> (8 * i));
		z[8 + i] = (uint8_t)((uint64_t)n >> (8 * i));
	}
	n += 16;
	do {
		size_t piece = n - at > PIECE ? PIECE : n - at;
		uint8_t last = at + piece == n;

		r = sb_wire_send2(w, type, &last, 1, z + at, piece, err);
		at += piece;
	} while (r == 0 && at < n);
	return r;
}

/*
 * Exactly `raw` bytes out of one zstd frame, a piece at a time: a gigabyte of zeros takes a few
 * kilobytes on the wire and a second here.
 */
static int
unpack(const uint8_t *z, size_t len, size_t raw, struct sb_buf *out, struct sb_error *err)
{
	ZSTD_inBuffer in = { .src = z, .size = len };
	ZSTD_DCtx *d = ZSTD_createDCtx();
	size_t left = 1;

	if (!d || ZSTD_isError(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, WINDOW_LOG))) {
		(void)ZSTD_freeDCtx(d);
		return sb_fail(err, SB_E_NOMEM, "blob: out of memory");
	}
	while (left && !ZSTD_isError(left) && sb_work_alive(NULL) == 0) {
		ZSTD_outBuffer o = { .dst = out->data + out->len, .size = raw - out->len };
		size_t at = in.pos;

		if (o.size > STEP)
			o.size = STEP;
		left = ZSTD_decompressStream(d, &o, &in);
		sb_buf_grow(out, o.pos);
		if (left && !ZSTD_isError(left) && !o.pos && in.pos == at)
			break; /* cut, or longer than it said */
	}
	(void)ZSTD_freeDCtx(d);
	if (sb_work_alive(err) < 0)
		return SB_E_CANCELED;
	if (left || in.pos != len || out->len != raw)
		return sb_fail(err, SB_E_PROTO, "the far side sent a damaged blob");
	return 0;
}

int
sb_wire_recv_blob(struct sb_wire *w, uint8_t type, const uint8_t *first, size_t first_len,
	size_t max, struct sb_buf *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf z = { 0 };
	const uint8_t *p = first;
	size_t len = first_len;
	struct sb_cursor c;
	uint64_t raw, packed;
	bool last;
	int r;

	sb_buf_init(&z, ZSTD_compressBound(max) + 16);
	do {
		if (len < 1 || p[0] > 1)
			return sb_fail(err, SB_E_PROTO, "the far side sent a damaged blob");
		last = p[0];
		sb_buf_add(&z, p + 1, len - 1);
		r = sb_buf_check(&z, "blob from the far side", err);
		if (r == SB_E_FULL)
			return sb_fail(err, SB_E_LIMIT,
				"the far side sent a blob of more than %zu bytes", max);
		if (r < 0)
			return r;
		if (!last) {
			r = sb_wire_expect(w, type, &p, &len, err);
			if (r < 0)
				return r;
		}
	} while (!last);
	sb_cursor_init(&c, z.data, z.len);
	raw = sb_cursor_u64(&c);
	packed = sb_cursor_u64(&c);
	if (c.bad || packed != sb_cursor_left(&c))
		return sb_fail(err, SB_E_PROTO, "the far side sent a damaged blob");
	if (raw > max)
		return sb_fail(err, SB_E_LIMIT,
			"the far side sent a blob of %llu bytes, the limit is %zu",
			(unsigned long long)raw, max);
	sb_buf_init(out, max);
	if (!sb_buf_reserve(out, raw))
		return sb_buf_check(out, "blob from the far side", err);
	r = unpack(z.data + 16, packed, raw, out, err);
	if (r < 0)
		sb_buf_free(out);
	return r;
}
