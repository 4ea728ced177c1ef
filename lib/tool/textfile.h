/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_TEXTFILE_H
#define SB_TOOL_TEXTFILE_H

#include <stdint.h>

#include <base/buf.h>
#include <tool/roots.h>

/* The most that is read or written at once. */
#define SB_TEXTFILE_MAX (64u << 20)

/*
 * Appends `limit` lines (0: all) from line `line` on (1 is the first; 0 means 1) to `out`.
 * SB_E_LIMIT when that is more than SB_TEXTFILE_MAX, SB_E_INVAL for what is not a regular file, the
 * codes of sb_roots_resolve for the path.
 */
int sb_textfile_read(const struct sb_roots *roots, const char *path, uint32_t line, uint32_t limit,
	struct sb_buf *out, struct sb_error *err);

/*
 * Replaces or makes the file so that a reader, and a crash, sees the old or the new text. Missing
 * parents are made. The mode of an existing file stays (and, for root, its owner); a new one gets
 * 0600.
 */
int sb_textfile_write(const struct sb_roots *roots, const char *path, const void *text, size_t len,
	struct sb_error *err);

#endif
