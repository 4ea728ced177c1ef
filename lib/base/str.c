/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/str.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *
sb_str_printf(const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return s;
}

bool
sb_str_to_i64(const char *s, int64_t min, int64_t max, int64_t *out)
{
	bool negative = *s == '-';
	int64_t v = 0;

	if (negative)
		s++;
	if (!*s)
		return false;
	for (; *s; s++) {
		int digit = *s - '0';

		if (digit < 0 || digit > 9 || __builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, negative ? -digit : digit, &v))
			return false;
	}
	if (v < min || v > max)
		return false;
	*out = v;
	return true;
}

char *
sb_str_hex(const uint8_t *in, size_t len, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		out[2 * i] = digits[in[i] >> 4];
		out[2 * i + 1] = digits[in[i] & 15];
	}
	out[2 * len] = 0;
	return out;
}

int
sb_str_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool
sb_str_unhex(const char *hex, uint8_t *out, size_t len)
{
	if (strlen(hex) != 2 * len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (sb_str_hex_digit(hex[2 * i]) < 0 || sb_str_hex_digit(hex[2 * i + 1]) < 0)
			return false;
	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)(sb_str_hex_digit(hex[2 * i]) << 4 |
			sb_str_hex_digit(hex[2 * i + 1]));
	return true;
}

bool
sb_str_starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

bool
sb_str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s);
	size_t k = strlen(suffix);

	return n >= k && !memcmp(s + n - k, suffix, k);
}
