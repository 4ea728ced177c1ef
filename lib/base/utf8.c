/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/utf8.h>

int
sb_utf8_next(const uint8_t *p, size_t left, uint32_t *cp)
{
	uint8_t low = 0x80, high = 0xbf;
	int n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
	uint32_t v = n == 1 ? *p : *p & (0x7fu >> n);

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
		v = v << 6 | (p[i] & 0x3f);
		low = 0x80;
		high = 0xbf;
	}
	if (cp)
		*cp = v;
	return n;
}
