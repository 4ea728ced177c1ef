/* SPDX-License-Identifier: MIT */
/*
 * Patterns and globs of a tenant. The first line is the pattern, the rest is searched. What a
 * pattern must contain never hides a line that matches; a glob agrees with one that tries all ways.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <host/files/linear.h>
#include <host/files/pathglob.h>
#include <host/files/pattern.h>

#include "fuzz.h"

static void
check_lines(const struct sb_pattern *p, const char *data, const char *end)
{
	const char *at = data, *line_end = NULL;
	const char *hit = sb_pattern_find(p, data, data, end, &line_end);

	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		const char *stop = nl ? nl : end;
		size_t len = (size_t)(stop - at);
		bool found = p->re ? sb_linear_matches(p->re, at, len) :
				     memmem(at, len, p->must, p->must_len) != NULL;

		FUZZ_CHECK(found == (hit == at));
		if (hit == at) {
			FUZZ_CHECK(line_end == stop);
			hit = stop < end ? sb_pattern_find(p, data, stop + 1, end, &line_end) :
					   NULL;
		}
		at = stop < end ? stop + 1 : end;
	}
}

/* One element of a part tried in all ways, for patterns without sets and escapes. */
static bool
naive(const char *p, const char *s)
{
	if (!*p)
		return !*s;
	if (*p == '*')
		return naive(p + 1, s) || (*s && naive(p, s + 1));
	return *s && (*p == '?' || *p == *s) && naive(p + 1, s + 1);
}

static void
check_glob(const char *pattern, const char *name)
{
	bool plain = strlen(pattern) < 12 && strlen(name) < 16 && !strpbrk(pattern, "[\\");

	for (const char *c = name; *c; c++)
		plain &= !((unsigned char)*c & 0x80);
	for (const char *c = pattern; *c; c++)
		plain &= !((unsigned char)*c & 0x80);
	if (plain)
		FUZZ_CHECK(sb_pathglob_name(pattern, name) == naive(pattern, name));
	else
		(void)sb_pathglob_name(pattern, name);
	(void)sb_pathglob_path(pattern, name);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nl = memchr(data, '\n', size);
	struct sb_pattern p;
	char *text, *rest;

	if (size > 8192 || !nl)
		return 0;
	text = strndup((const char *)data, (size_t)(nl - data));
	rest = strndup((const char *)nl + 1, size - (size_t)(nl - data) - 1);
	if (text && rest) {
		if (sb_pattern_make(text, size % 4 == 0, &p, NULL) == 0) {
			check_lines(&p, rest, rest + strlen(rest));
			sb_pattern_free(&p);
		}
		check_glob(text, rest);
	}
	free(text);
	free(rest);
	return 0;
}
