/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/quote.h>

#include <string.h>

void
sb_quote_word(struct sb_buf *out, const char *word)
{
	sb_buf_add_char(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			sb_buf_add_str(out, "'\\''");
		else
			sb_buf_add_char(out, *word);
	}
	sb_buf_add_char(out, '\'');
}

void
sb_quote_argument(struct sb_buf *out, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@";

	if (*word && word[strspn(word, plain)] == '\0')
		sb_buf_add_str(out, word);
	else
		sb_quote_word(out, word);
}
