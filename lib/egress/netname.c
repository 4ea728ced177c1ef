/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/netname.h>

#include <ctype.h>

bool
sb_netname_check(const char *name, size_t len, char out[SB_NETNAME_MAX])
{
	size_t label = 0, last = 0;

	if (len > 0 && name[len - 1] == '.')
		len--;
	if (len == 0 || len >= SB_NETNAME_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c == '.') {
			if (label == 0)
				return false;
			label = 0;
			last = i + 1;
		} else if (++label > 63 || !(isascii(c) && (isalnum(c) || c == '-' || c == '_'))) {
			return false;
		}
		out[i] = (char)tolower(c);
	}
	out[len] = '\0';
	/* 1.2.3.4, 127.1, 0x7f000001: spellings of addresses. */
	return label > 0 && !isdigit((unsigned char)out[last]);
}
