/* SPDX-License-Identifier: MIT */
/*
 * Patches: one zstd frame made with the base as prefix. The window must reach from the
 * end of the new content back to the beginning of the base; beyond what zstd's tables
 * remember (a few MiB at low levels) long-distance matching finds the rest.
 */
#include "config.h"

#include <sync/codec/patch.h>

#include <assert.h>

#include <zstd.h>
#include <zstd_errors.h>

/* Below this the ordinary tables find what is there, and tables for more cost time. */
#define LONG_FROM (4u << 20)
#define WINDOW_LOG_MIN 10

static unsigned
window_log(size_t reach)
{
	unsigned log = WINDOW_LOG_MIN;

	while (((size_t)1 << log) < reach)
		log++;
	return log;
}

static size_t
set_up(ZSTD_CCtx *c, const void *base, size_t base_len, size_t len, int level)
{
	size_t reach = base_len + len;
	size_t n = ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);

	if (!ZSTD_isError(n))
		n = ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, (int)window_log(reach));
	if (!ZSTD_isError(n) && reach >= LONG_FROM)
		n = ZSTD_CCtx_setParameter(c, ZSTD_c_enableLongDistanceMatching, 1);
	if (!ZSTD_isError(n))
		n = ZSTD_CCtx_refPrefix(c, base, base_len);
	return n;
}

int
sb_patch_make(const void *base, size_t base_len, const void *data, size_t len, int level,
	struct sb_buf *out, struct sb_error *err)
{
	ZSTD_CCtx *c;
	size_t room, n;
	uint8_t *to;

	if (base_len > SB_PATCH_MAX_SIZE || len > SB_PATCH_MAX_SIZE)
		return sb_fail(err, SB_E_LIMIT, "patch of %zu on %zu bytes: at most %u each", len,
			base_len, SB_PATCH_MAX_SIZE);
	room = ZSTD_compressBound(len);
	if (room > out->max - out->len)
		room = out->max - out->len;
	to = sb_buf_reserve(out, room);
	if (!to)
		return sb_buf_check(out, "patch", err);
	c = ZSTD_createCCtx();
	if (!c)
		return sb_fail(err, SB_E_NOMEM, "zstd compressor: out of memory");
	n = set_up(c, base, base_len, len, level);
	if (!ZSTD_isError(n))
		n = ZSTD_compress2(c, to, room, data, len);
	(void)ZSTD_freeCCtx(c);
	if (!ZSTD_isError(n)) {
		sb_buf_grow(out, n);
		return 0;
	}
	if (ZSTD_getErrorCode(n) == ZSTD_error_dstSize_tooSmall)
		return sb_fail(err, SB_E_FULL, "patch: larger than %zu bytes", room);
	if (ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
		return sb_fail(err, SB_E_NOMEM, "patch: out of memory");
	return sb_fail(err, SB_E_INVAL, "patch at level %d: %s", level, ZSTD_getErrorName(n));
}

int
sb_patch_apply(const void *base, size_t base_len, const void *patch, size_t patch_len, void *out,
	size_t new_len, struct sb_error *err)
{
	ZSTD_DCtx *d;
	size_t n;

	/*
	 * Decoding in one call needs no window but the output, whatever the frame asks
	 * for.
	 */
	if (ZSTD_getFrameContentSize(patch, patch_len) != new_len ||
		ZSTD_findFrameCompressedSize(patch, patch_len) != patch_len)
		return sb_fail(err, SB_E_CORRUPT, "patch is not one frame of %zu bytes", new_len);
	d = ZSTD_createDCtx();
	if (!d)
		return sb_fail(err, SB_E_NOMEM, "zstd decoder: out of memory");
	n = ZSTD_DCtx_refPrefix(d, base, base_len);
	if (!ZSTD_isError(n))
		n = ZSTD_decompressDCtx(d, out, new_len, patch, patch_len);
	(void)ZSTD_freeDCtx(d);
	if (ZSTD_isError(n))
		return sb_fail(err, SB_E_CORRUPT, "patch: %s", ZSTD_getErrorName(n));
	if (n != new_len)
		return sb_fail(err, SB_E_CORRUPT, "patch gave %zu bytes, not %zu", n, new_len);
	return 0;
}
