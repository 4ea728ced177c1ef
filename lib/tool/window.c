/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/window.h>

#include <string.h>

#include <base/utf8.h>

#define REPLACEMENT "\xef\xbf\xbd"

void
sb_window_init(struct sb_window *w, size_t limit)
{
	*w = (struct sb_window){ .limit = limit };
	sb_buf_init(&w->b, 2 * limit);
}

void
sb_window_free(struct sb_window *w)
{
	sb_buf_free(&w->b);
}

void
sb_window_add(struct sb_window *w, const void *data, size_t len)
{
	const uint8_t *p = data;

	w->total += len;
	if (len > w->limit) {
		p += len - w->limit;
		len = w->limit;
		sb_buf_reset(&w->b);
	}
	/* Moved only when full, so that every byte is moved once on average. */
	if (w->b.len + len > 2 * w->limit)
		sb_buf_consume(&w->b, w->b.len + len - w->limit);
	sb_buf_add(&w->b, p, len);
	if (w->b.failed) {
		sb_buf_reset(&w->b);
		w->lost = true;
	}
}

static void
clean(const uint8_t *p, size_t len, bool ended, struct sb_buf *out)
{
	const uint8_t *end = p + len;

	while (p < end) {
		int n = sb_utf8_next(p, (size_t)(end - p), NULL);

		if (n < 0 && !ended)
			return;
		if (n > 0)
			sb_buf_add(out, p, (size_t)n);
		else
			sb_buf_add(out, REPLACEMENT, 3);
		p += n > 0 ? n : 1;
	}
}

bool
sb_window_text(const struct sb_window *w, bool ended, struct sb_buf *out)
{
	sb_auto(sb_buf) struct sb_buf text;
	size_t skip = w->b.len > w->limit ? w->b.len - w->limit : 0;
	bool cut = w->total > w->limit || w->lost;

	sb_buf_init(&text, 3 * w->limit);
	/* What is left of a character whose beginning is gone. */
	for (int i = 0; cut && i < 3 && skip < w->b.len && (w->b.data[skip] & 0xc0) == 0x80; i++)
		skip++;
	clean(w->b.data + skip, w->b.len - skip, ended, &text);
	skip = text.len > w->limit ? text.len - w->limit : 0;
	if (skip > 0)
		cut = true;
	while (skip > 0 && skip < text.len && (text.data[skip] & 0xc0) == 0x80)
		skip++;
	sb_buf_add(out, text.data + skip, text.len - skip);
	return cut || text.failed;
}
