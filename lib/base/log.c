/* SPDX-License-Identifier: MIT */
/* Passes log lines on to the program that uses the library (declared in sb/log.h). */
#include "config.h"

#include <sb/log.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/escape.h>

/* No line is longer than this before escaping; more is cut. */
#define LINE_MAX_BYTES ((size_t)16384)

static bool
listed(const char *components, const char *name)
{
	size_t n = strlen(name);

	while (components) {
		const char *comma = strchrnul(components, ',');

		if ((size_t)(comma - components) == n && !memcmp(components, name, n))
			return true;
		components = *comma ? comma + 1 : NULL;
	}
	return false;
}

void
sb_log(const struct sb_log *log, enum sb_log_level level, const char *component, const char *fmt,
	...)
{
	char raw[1024];
	char line[4 * sizeof raw];
	sb_autofree char *big = NULL;
	const char *text = raw;
	char *out = line;
	size_t out_size = sizeof line;
	size_t len;
	va_list ap;
	int n;

	if (!log || !log->fn || level > log->level)
		return;
	if (log->components && !listed(log->components, component))
		return;
	va_start(ap, fmt);
	n = vsnprintf(raw, sizeof raw, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	len = (size_t)n < LINE_MAX_BYTES ? (size_t)n : LINE_MAX_BYTES;
	/* A long line needs the heap; without memory its beginning has to do. */
	if (len >= sizeof raw)
		big = malloc(5 * (len + 1));
	if (big) {
		va_start(ap, fmt);
		(void)vsnprintf(big, len + 1, fmt, ap);
		va_end(ap);
		text = big;
		out = big + len + 1;
		out_size = 4 * (len + 1);
	} else if (len >= sizeof raw) {
		len = sizeof raw - 1;
	}
	log->fn(level, component, sb_escape_message(text, len, out, out_size), log->arg);
}
