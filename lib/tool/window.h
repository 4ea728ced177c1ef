/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_WINDOW_H
#define SB_TOOL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include <base/buf.h>

/* The last bytes of a stream. Not thread-safe. */
struct sb_window {
	size_t limit;
	struct sb_buf b; /* at most twice the limit */
	uint64_t total;  /* bytes that came, kept or not */
	bool lost;       /* memory ran out on the way */
};

/* `limit` 0 keeps nothing. */
void sb_window_init(struct sb_window *w, size_t limit);
void sb_window_free(struct sb_window *w);
void sb_window_add(struct sb_window *w, const void *data, size_t len);

/*
 * Appends the window as text to `out`: at most `limit` bytes of valid UTF-8. Bytes that are none
 * become U+FFFD; a cut never parts a character, neither at the front nor (unless `ended`) at the
 * end, where its rest may still come. Returns whether something is missing in front.
 */
bool sb_window_text(const struct sb_window *w, bool ended, struct sb_buf *out);

#endif
