/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/http/range.h>

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* At most 18 digits. */
static bool
number(const char **s, uint64_t *out)
{
	size_t n = strspn(*s, "0123456789");

	*out = 0;
	for (size_t i = 0; i < n; i++)
		*out = *out * 10 + (uint64_t)((*s)[i] - '0');
	*s += n;
	return n > 0 && n <= 18;
}

enum sb_range
sb_range_parse(const char *h, uint64_t size, uint64_t *from, uint64_t *len)
{
	uint64_t a = 0, b = 0;

	if (!h || strncasecmp(h, "bytes=", 6) != 0)
		return SB_RANGE_ALL;
	h += 6 + strspn(h + 6, " \t");
	if (*h == '-') {
		h++;
		if (!number(&h, &b) || *h)
			return SB_RANGE_ALL;
		if (b == 0 || size == 0)
			return SB_RANGE_NONE;
		*from = b < size ? size - b : 0;
		*len = size - *from;
		return SB_RANGE_PART;
	}
	if (!number(&h, &a) || *h++ != '-')
		return SB_RANGE_ALL;
	if (*h && (!number(&h, &b) || *h || b < a))
		return SB_RANGE_ALL;
	if (a >= size)
		return SB_RANGE_NONE;
	if (h[-1] == '-' || b >= size)
		b = size - 1;
	*from = a;
	*len = b - a + 1;
	return SB_RANGE_PART;
}
