/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/base64.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool
sb_base64_encode(const void *data, size_t len, char *out, size_t size)
{
	const uint8_t *p = data;
	size_t n = 0;

	if (len > SIZE_MAX / 4 || size < (len * 4 + 2) / 3 + 1)
		return false;
	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16;

		if (i + 1 < len)
			v |= (uint32_t)p[i + 1] << 8;
		if (i + 2 < len)
			v |= p[i + 2];
		out[n++] = digits[v >> 18];
		out[n++] = digits[v >> 12 & 63];
		if (i + 1 < len)
			out[n++] = digits[v >> 6 & 63];
		if (i + 2 < len)
			out[n++] = digits[v & 63];
	}
	out[n] = '\0';
	return true;
}

bool
sb_base64_encode_padded(const void *data, size_t len, char *out, size_t size)
{
	size_t n;

	if (len > SIZE_MAX / 4 || size < (len + 2) / 3 * 4 + 1 ||
		!sb_base64_encode(data, len, out, size))
		return false;
	for (n = (len * 4 + 2) / 3; n % 4 > 0; n++)
		out[n] = '=';
	out[n] = '\0';
	return true;
}

static int
digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	if (c == '/' || c == '_')
		return 63;
	return -1;
}

bool
sb_base64_decode(const char *s, size_t len, struct sb_buf *out)
{
	uint32_t v = 0;
	unsigned bits = 0;

	for (int pad = 0; pad < 2 && len > 0 && s[len - 1] == '='; pad++)
		len--;
	if (len % 4 == 1)
		return false;
	for (size_t i = 0; i < len; i++) {
		int d = digit_value(s[i]);

		if (d < 0)
			return false;
		v = v << 6 | (uint32_t)d;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			sb_buf_add_u8(out, (uint8_t)(v >> bits));
		}
	}
	return out->failed == 0;
}
