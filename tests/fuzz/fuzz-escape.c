/* SPDX-License-Identifier: MIT */
/*
 * Escaping for terminals. The first byte is the size of the output. What comes out is a C string
 * within that size, holds no control byte, is valid UTF-8, and undoing the escapes gives a
 * beginning of the input.
 */
#include <string.h>

#include <sb/log.h>

#include "fuzz.h"

static int
hex(char c)
{
	FUZZ_CHECK((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* The byte that stands at `p`; moves on behind it. */
static uint8_t
unescape(const char **p)
{
	const char *s = *p;
	int v;

	if (s[0] != '\\') {
		*p += 1;
		return (uint8_t)s[0];
	}
	if (s[1] == 'x') {
		v = hex(s[2]);
		*p += 4;
		return (uint8_t)(v << 4 | hex(s[3]));
	}
	*p += 2;
	FUZZ_CHECK(s[1] == 'n' || s[1] == 't' || s[1] == '\\');
	return s[1] == 'n' ? '\n' : s[1] == 't' ? '\t' : '\\';
}

/* The bytes of the character at `p`, judged by its first byte alone; what follows must fit it. */
static size_t
char_len(const char *p)
{
	uint8_t c = (uint8_t)*p;
	size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

	FUZZ_CHECK(c < 0x80 || (c >= 0xc2 && c <= 0xf4));
	for (size_t i = 1; i < n; i++)
		FUZZ_CHECK(((uint8_t)p[i] & 0xc0) == 0x80);
	/* C1 controls and the bidirectional overrides never come through. */
	FUZZ_CHECK(c != 0xc2 || (uint8_t)p[1] >= 0xa0);
	FUZZ_CHECK(memcmp(p, "\xe2\x80\xae", 3) && memcmp(p, "\xe2\x81\xa6", 3));
	return n;
}

static void
check_text(const char *out, const uint8_t *in, size_t len, size_t *used)
{
	const char *p = out;
	size_t i = 0;

	while (*p) {
		FUZZ_CHECK((uint8_t)*p >= 0x20 && *p != 0x7f && i < len);
		for (size_t n = *p == '\\' ? 1 : char_len(p); n; n--)
			FUZZ_CHECK(unescape(&p) == in[i++]);
	}
	*used = i;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t size = len ? data[0] : 0;
	size_t used;
	char *small;
	char *large;

	if (len < 1)
		return 0;
	data++;
	len--;
	/*
	 * Blocks of the exact size, so that the sanitizer sees a byte too many. The 3 are for
	 * memcmp in char_len.
	 */
	small = calloc(1, size + 1);
	large = calloc(1, 4 * len + 4);
	FUZZ_CHECK(small && large);
	small[size] = '#';
	FUZZ_CHECK(sb_escape((const char *)data, len, small, size) == small && small[size] == '#');
	FUZZ_CHECK(!size || strlen(small) < size);
	(void)sb_escape((const char *)data, len, large, 4 * len + 1);
	check_text(large, data, len, &used);
	/* With room for all of it nothing is cut, and a cut text is the beginning of the whole. */
	FUZZ_CHECK(used == len);
	FUZZ_CHECK(!size || !strncmp(small, large, strlen(small)));
	/* It is cut only where the next character, at most 12 bytes, does not fit. */
	FUZZ_CHECK(!size || strlen(small) == strlen(large) || strlen(small) + 12 >= size);
	free(small);
	free(large);
	return 0;
}
