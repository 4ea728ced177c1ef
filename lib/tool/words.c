/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/words.h>

#include <string.h>

#include <base/buf.h>

#define LINE_MAX_BYTES (1u << 20)

static bool
blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/*
 * One quoted part; `p` is behind the opening quote. Returns what follows the closing one, or NULL.
 */
static const char *
quoted(const char *p, char quote, struct sb_buf *word)
{
	for (; *p && *p != quote; p++) {
		if (quote == '"' && *p == '\\' && p[1] && strchr("\"\\$`", p[1]))
			p++;
		sb_buf_add_char(word, *p);
	}
	return *p ? p + 1 : NULL;
}

/* One word; NULL for an open quote or a trailing backslash. */
static const char *
take_word(const char *p, struct sb_buf *word)
{
	while (p && *p && !blank(*p)) {
		if (*p == '\'' || *p == '"') {
			p = quoted(p + 1, *p, word);
		} else if (*p == '\\') {
			if (!p[1])
				return NULL;
			sb_buf_add_char(word, p[1]);
			p += 2;
		} else {
			sb_buf_add_char(word, *p++);
		}
	}
	return p;
}

int
sb_words_split(const char *line, struct sb_strlist *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf word;
	size_t before = out->n;
	const char *p = line;
	int r = 0;

	sb_buf_init(&word, LINE_MAX_BYTES);
	for (;;) {
		while (blank(*p))
			p++;
		if (!*p)
			break;
		sb_buf_reset(&word);
		p = take_word(p, &word);
		if (!p)
			return sb_fail(err, SB_E_INVAL,
				"command line: a quote is not closed, or a backslash ends it");
		r = sb_buf_check(&word, "command line", err);
		if (r < 0)
			return r;
		sb_strlist_add(out, (char *)word.data);
	}
	r = sb_strlist_check(out, err);
	if (r == 0 && out->n == before)
		return sb_fail(err, SB_E_INVAL, "command line: there is no command in it");
	return r;
}
