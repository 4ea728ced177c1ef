/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/window.h>

#include <string.h>

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

/*
 * Length of the valid UTF-8 sequence at `p`; 0: there is none; -1: what is there is the beginning
 * of one. Surrogates, overlong forms and values past U+10FFFF are none.
 */
static int
sequence(const uint8_t *p, size_t left)
{
	uint8_t low = 0x80, high = 0xbf;
	int n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;

	if (*p == 0xe0)
		low = 0xa0;
	else if (*p == 0xed)
		high = 0x9f;
	else if (*p == 0xf0)
		low = 0x90;
	else if (*p == 0xf4)
		high = 0x8f;
	for (int i = 1; i < n; i++) {
		if ((size_t)i >= left)
			return -1;
		if (p[i] < low || p[i] > high)
			return 0;
		low = 0x80;
		high = 0xbf;
	}
	return n;
}

static void
clean(const uint8_t *p, size_t len, bool ended, struct sb_buf *out)
{
	const uint8_t *end = p + len;

	while (p < end) {
		int n = sequence(p, (size_t)(end - p));

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
