/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_PATCH_H
#define SBSYNC_PATCH_H

#include <stddef.h>

#include <base/buf.h>
#include <sb/error.h>

#define SB_PATCH_MAX_SIZE (128u << 20) /* base and new each; more memory than that is not spent */

/*
 * zstd with the base as prefix (long-distance matching and a window over both for large ones).
 * `base` and `data` must not overlap. make appends to `out` (initialised by the caller): SB_E_LIMIT
 * past SB_PATCH_MAX_SIZE, SB_E_FULL when the patch does not fit below the buffer's ceiling (so a
 * ceiling of `len` asks for a patch only if it is worth one). apply: gives exactly `new_len` bytes
 * or SB_E_CORRUPT; window and output are bounded by the lengths given, never by the frame.
 */
int sb_patch_make(const void *base, size_t base_len, const void *data, size_t len, int level,
	struct sb_buf *out, struct sb_error *err);
int sb_patch_apply(const void *base, size_t base_len, const void *patch, size_t patch_len,
	void *out, size_t new_len, struct sb_error *err);

#endif
