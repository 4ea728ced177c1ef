/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/files/pathglob.h>

#include <stdint.h>
#include <string.h>

#include <base/utf8.h>

/* What is left of a text. */
struct span {
	const char *at, *end;
};

/* The character at the front, which is taken off. Bytes that are no UTF-8 are past all others. */
static uint32_t
take(struct span *s)
{
	uint32_t cp = 0;
	int n = sb_utf8_next((const uint8_t *)s->at, (size_t)(s->end - s->at), &cp);

	if (n <= 0) {
		cp = 0x110000 + (uint8_t)*s->at;
		n = 1;
	}
	s->at += n;
	return cp;
}

static bool
in_class(const char *name, size_t len, uint32_t c)
{
	static const struct {
		const char *name, *ranges;
	} classes[] = {
		{ "alnum", "09AZaz" },
		{ "alpha", "AZaz" },
		{ "blank", "  \t\t" },
		{ "digit", "09" },
		{ "lower", "az" },
		{ "punct", "!/:@[`{~" },
		{ "space", "  \t\r" },
		{ "upper", "AZ" },
		{ "xdigit", "09AFaf" },
		{ "print", " ~" },
		{ "graph", "!~" },
		{ "cntrl", "\001\037\177\177" },
	};

	for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
		if (strlen(classes[i].name) != len || memcmp(classes[i].name, name, len) != 0)
			continue;
		for (const char *r = classes[i].ranges; *r; r += 2)
			if (c >= (unsigned char)r[0] && c <= (unsigned char)r[1])
				return true;
	}
	return false;
}

/* One character of a set, by itself or behind a backslash. */
static uint32_t
take_member(struct span *p)
{
	if (*p->at == '\\' && p->end - p->at > 1)
		p->at++;
	return take(p);
}

/*
 * The set behind `[`, which is taken off. 1: `c` is in it, 0: it is not, -1: the set has no end,
 * so the bracket means itself.
 */
static int
in_set(struct span *p, uint32_t c)
{
	struct span s = *p;
	bool found = false, negated = false, first = true;

	if (s.at < s.end && (*s.at == '!' || *s.at == '^')) {
		negated = true;
		s.at++;
	}
	for (; s.at < s.end && (first || *s.at != ']'); first = false) {
		const char *close;
		uint32_t low, high;

		if (s.end - s.at > 3 && s.at[0] == '[' && s.at[1] == ':' &&
			(close = memmem(s.at + 2, (size_t)(s.end - s.at - 2), ":]", 2))) {
			found |= in_class(s.at + 2, (size_t)(close - s.at - 2), c);
			s.at = close + 2;
			continue;
		}
		low = high = take_member(&s);
		if (s.end - s.at > 1 && *s.at == '-' && s.at[1] != ']') {
			s.at++;
			high = take_member(&s);
		}
		found |= c >= low && c <= high;
	}
	if (s.at >= s.end)
		return -1;
	p->at = s.at + 1;
	return found != negated;
}

/* The next element of the pattern, which is no star, against the next character. */
static bool
step(struct span *p, struct span *s)
{
	uint32_t c;

	if (p->at >= p->end || s->at >= s->end)
		return false;
	c = take(s);
	if (*p->at == '?') {
		p->at++;
		return true;
	}
	if (*p->at == '[') {
		struct span set = { p->at + 1, p->end };
		int in = in_set(&set, c);

		if (in >= 0) {
			p->at = set.at;
			return in;
		}
	}
	return take_member(p) == c;
}

static bool
part(struct span p, struct span s, bool period)
{
	struct span back_p = { NULL, NULL }, back_s = s;

	if (period && s.at < s.end && *s.at == '.' && p.at < p.end && *p.at != '.' &&
		strncmp(p.at, "\\.", 2) != 0)
		return false;
	while (s.at < s.end || p.at < p.end) {
		struct span next_p = p, next_s = s;

		if (p.at < p.end && *p.at == '*') {
			p.at++;
			back_p = p;
			back_s = s;
		} else if (step(&next_p, &next_s)) {
			p = next_p;
			s = next_s;
		} else if (back_p.at && back_s.at < back_s.end) {
			(void)take(&back_s);
			p = back_p;
			s = back_s;
		} else {
			return false;
		}
	}
	return true;
}

bool
sb_pathglob_name(const char *pattern, const char *name)
{
	return part((struct span){ pattern, pattern + strlen(pattern) },
		(struct span){ name, name + strlen(name) }, false);
}

/* The first part of a path; `*next` is what follows it, or NULL. */
static struct span
first_part(const char *path, const char **next)
{
	const char *end = strchrnul(path, '/');

	*next = *end ? end + 1 : NULL;
	return (struct span){ path, end };
}

bool
sb_pathglob_path(const char *pattern, const char *path)
{
	const char *back_p = NULL, *back_s = NULL, *p = pattern, *s = path;

	for (;;) {
		const char *next_p = NULL, *next_s = NULL;
		struct span want = { NULL, NULL }, have = { NULL, NULL };

		if (!p && !s)
			return true;
		if (p)
			want = first_part(p, &next_p);
		if (s)
			have = first_part(s, &next_s);
		if (p && s && want.end - want.at == 2 && memcmp(want.at, "**", 2) == 0) {
			if (!next_p || !*next_p)
				return true;
			p = back_p = next_p;
			back_s = s;
		} else if (p && s && part(want, have, true)) {
			p = next_p;
			s = next_s;
		} else if (back_s) {
			(void)first_part(back_s, &back_s);
			if (!back_s)
				return false;
			p = back_p;
			s = back_s;
		} else {
			return false;
		}
	}
}
