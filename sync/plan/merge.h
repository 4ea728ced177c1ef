/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_MERGE_H
#define SBSYNC_MERGE_H

#include <stddef.h>

#include <base/buf.h>

/*
 * Three-way merge of texts, line by line: what one side changed since `base` is taken from it, what
 * both changed alike once. Returns 1 with the merged text in `out` (initialised by the call), 0
 * when there is no clean result: both changed the same or neighbouring lines, or lines that are
 * equal to such (which of them changed cannot be told), one of the three is
 * no text (holds a NUL byte), or it is too large or too different to find out in bounded time and
 * memory. Touches no file.
 */
#define SB_MERGE_MAX_BYTES (8u << 20)
#define SB_MERGE_MAX_LINES 400000u
#define SB_MERGE_MAX_EDITS 3000 /* lines added and removed between the base and one side */

struct sb_merge_text {
	const void *data;
	size_t len;
};

int sb_merge_texts(const struct sb_merge_text *base, const struct sb_merge_text *a,
	const struct sb_merge_text *b, struct sb_buf *out, struct sb_error *err);

#endif
