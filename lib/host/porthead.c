/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/porthead.h>

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define METHOD "CONNECT "
#define FIELD "Proxy-Authorization:"

/* The length of the line at `p` without its CRLF; -1: it does not end; -2: it is not a line. */
static long
line_of(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i] == '\r')
			return i + 1 == len ? -1 : p[i + 1] == '\n' ? (long)i : -2;
		if ((unsigned char)p[i] < ' ' && p[i] != '\t')
			return -2;
		if ((unsigned char)p[i] >= 127)
			return -2;
	}
	return -1;
}

static bool
take_value(const char *p, size_t len, char *authorization)
{
	while (len && (*p == ' ' || *p == '\t')) {
		p++;
		len--;
	}
	while (len && (p[len - 1] == ' ' || p[len - 1] == '\t'))
		len--;
	if (!len || *authorization)
		return false;
	memcpy(authorization, p, len);
	authorization[len] = 0;
	return true;
}

int
sb_porthead_read(const char *p, size_t len, size_t *used, char *authorization)
{
	size_t at = 0, most = len < SB_PORTHEAD_MAX ? len : SB_PORTHEAD_MAX;

	*authorization = 0;
	if (strncmp(p, METHOD, most < sizeof METHOD - 1 ? most : sizeof METHOD - 1) != 0)
		return -1;
	for (bool first = true;; first = false) {
		long n = line_of(p + at, most - at);

		if (n == -1)
			return most < SB_PORTHEAD_MAX ? 0 : -1;
		if (n < 0)
			return -1;
		if (n == 0 && !first) {
			*used = at + 2;
			return *authorization ? 1 : -1;
		}
		/* The request itself ends in its version; a field begins with its name. */
		if (first ? n < 18 || memcmp(p + n - 9, " HTTP/1.1", 9) != 0 :
			    p[at] == ' ' || p[at] == '\t' || !memchr(p + at, ':', (size_t)n))
			return -1;
		if (!first && (size_t)n >= sizeof FIELD - 1 &&
			strncasecmp(p + at, FIELD, sizeof FIELD - 1) == 0 &&
			!take_value(p + at + sizeof FIELD - 1, (size_t)n - (sizeof FIELD - 1),
				authorization))
			return -1;
		at += (size_t)n + 2;
	}
}
