/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/escape.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <base/utf8.h>
#include <sb/log.h>

/* Characters that move the cursor, change the direction of text or end a line. */
static bool
is_unsafe(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp <= 0x9f) || cp == 0x61c || cp == 0x200e ||
		cp == 0x200f || (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069) ||
		cp == 0xfeff;
}

/* The letter of a two-character escape, or 0. */
static char
short_escape(uint32_t cp, bool keep_backslash)
{
	if (cp == '\n')
		return 'n';
	if (cp == '\t')
		return 't';
	return cp == '\\' && !keep_backslash ? '\\' : 0;
}

/*
 * Puts what stands for the next character into `piece`; returns its length and how much
 * it used up.
 */
static size_t
next_piece(const uint8_t *p, size_t left, bool keep_backslash, char piece[16], size_t *used)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t cp = 0;
	int sequence = sb_utf8_next(p, left, &cp);
	size_t n = sequence > 0 ? (size_t)sequence : 0;
	size_t len = 0;
	char letter = short_escape(cp, keep_backslash);

	*used = n ? n : 1;
	if (n && letter) {
		piece[len++] = '\\';
		piece[len++] = letter;
		return len;
	}
	if (n && !is_unsafe(cp)) {
		memcpy(piece, p, n);
		return n;
	}
	for (size_t i = 0; i < *used; i++) {
		piece[len++] = '\\';
		piece[len++] = 'x';
		piece[len++] = digits[p[i] >> 4];
		piece[len++] = digits[p[i] & 15];
	}
	return len;
}

static char *
escape(const char *in, size_t len, bool keep_backslash, char *out, size_t size)
{
	const uint8_t *p = (const uint8_t *)in;
	size_t at = 0;

	if (!size)
		return out;
	while (len) {
		char piece[16];
		size_t used;
		size_t n = next_piece(p, len, keep_backslash, piece, &used);

		if (n >= size - at)
			break;
		memcpy(out + at, piece, n);
		at += n;
		p += used;
		len -= used;
	}
	out[at] = 0;
	return out;
}

char *
sb_escape(const char *in, size_t len, char *out, size_t size)
{
	return escape(in, len, false, out, size);
}

char *
sb_escape_message(const char *in, size_t len, char *out, size_t size)
{
	return escape(in, len, true, out, size);
}

const char *
sb_escape_name(const char *name, size_t len, struct sb_escape_name *room)
{
	return sb_escape(name, len, room->text, sizeof room->text);
}
