/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/files/pattern.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <host/files/linear.h>

#define SPECIAL "\\.[]{}()*+?^$|"

/* The end of the set that begins at `p`, which is a bracket: its own bracket or the end. */
static const char *
set_end(const char *p)
{
	p++;
	p += *p == '^';
	p += *p == ']';
	for (; *p && *p != ']'; p++) {
		const char *close = p[0] == '[' && p[1] == ':' ? strstr(p + 2, ":]") : NULL;

		if (close)
			p = close + 1;
		else if (*p == '\\' && p[1])
			p++;
	}
	return p;
}

/*
 * Several quantifiers behind each other, as POSIX has them, are one: what may be missing and what
 * may come again add up. A question mark behind one other means "as little as possible", which
 * makes no difference here. Returns the last of them.
 */
static const char *
add_quantifier(const char *p, struct sb_buf *out)
{
	size_t n = strspn(p, "*+?");
	bool lazy = n == 2 && p[1] == '?';
	bool none = memchr(p, '*', n) || memchr(p, '?', lazy ? 1 : n);
	bool more = memchr(p, '*', n) || memchr(p, '+', n);

	sb_buf_add_char(out, none && more ? '*' : none ? '?' : '+');
	return p + n - 1;
}

/* A backslash and what follows it. */
static int
add_escape(char c, struct sb_buf *out, struct sb_error *err)
{
	if (c >= '1' && c <= '9')
		return sb_fail(err, SB_E_INVAL, "grep pattern: back references are not supported");
	if (c == '<' || c == '>')
		sb_buf_add_str(out, "\\b");
	else if (c == '`' || c == '\'')
		sb_buf_add_str(out, c == '`' ? "\\A" : "\\z");
	else
		sb_buf_addf(out, "\\%c", c);
	return 0;
}

/* What POSIX says otherwise than RE2. */
static int
translate(const char *t, struct sb_buf *out, struct sb_error *err)
{
	int r = 0;

	for (const char *p = t; *p && r == 0; p++) {
		if (*p == '\\' && p[1]) {
			r = add_escape(*++p, out, err);
		} else if (*p == '[') {
			const char *end = set_end(p);

			sb_buf_add(out, p, (size_t)(end - p));
			p = end - (*end == '\0');
			if (*end)
				sb_buf_add_char(out, ']');
		} else if (*p == '(' && p[1] == '?') {
			sb_buf_add_str(out, "(?");
			p++;
		} else if (strchr("*+?", *p) && p > t) {
			p = add_quantifier(p, out);
		} else if (*p == '{' && p[1] == ',' && isdigit((unsigned char)p[2])) {
			sb_buf_add_str(out, "{0");
		} else {
			sb_buf_add_char(out, *p);
		}
	}
	return r < 0 ? r : sb_buf_check(out, "pattern", err);
}

/* Behind the group that begins at `p`, or the end. */
static const char *
group_end(const char *p)
{
	int depth = 0;

	for (; *p; p++) {
		if (*p == '\\' && p[1]) {
			p++;
		} else if (*p == '[') {
			p = set_end(p);
			if (!*p)
				break;
		} else {
			depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
			if (depth == 0)
				return p + 1;
		}
	}
	return p;
}

/* Whether all that `find_must` reads of it means what it looks like. */
static bool
is_simple(const char *re)
{
	if (strchr(re, '|'))
		return false;
	for (const char *p = re; *p; p++) {
		if (*p == '(' && p[1] == '?' && p[2] != ':')
			return false;
		if (*p == '\\' && p[1] && isalnum((unsigned char)*++p) && !strchr("dDwWsSbBAz", *p))
			return false;
	}
	return true;
}

/* Without its last character, which a quantifier says may be missing. */
static size_t
drop_last(const char *s, size_t len)
{
	while (len > 0 && ((unsigned char)s[len - 1] & 0xc0) == 0x80)
		len--;
	return len > 0 ? len - 1 : 0;
}

/*
 * The longest run of plain characters outside of groups that every match must have; "" when there
 * are alternatives, or anything that changes what plain characters mean.
 */
static char *
find_must(const char *re)
{
	const char *best = "", *start = re, *p = re;
	size_t best_len = 0;

	if (!is_simple(re))
		return strdup("");
	for (;;) {
		size_t len;

		p += strcspn(p, SPECIAL);
		len = (size_t)(p - start);
		if (*p && strchr("*?{", *p))
			len = drop_last(start, len);
		if (len > best_len) {
			best = start;
			best_len = len;
		}
		if (!*p)
			break;
		if (*p == '(') {
			/* A group may be optional: nothing in it counts. */
			p = group_end(p);
		} else if (*p == '[') {
			p = set_end(p);
			p += *p != '\0';
		} else if (*p == '{') {
			p = strchrnul(p, '}');
			p += *p != '\0';
		} else {
			p += *p == '\\' && p[1] ? 2 : 1;
		}
		start = p;
	}
	return strndup(best, best_len);
}

int
sb_pattern_make(const char *text, bool literal, struct sb_pattern *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf re = { 0 };
	char why[200];
	int r;

	*out = (struct sb_pattern){ 0 };
	if (!*text || strlen(text) > SB_PATTERN_MAX)
		return sb_fail(err, SB_E_INVAL, "grep pattern must have 1 to %d bytes",
			SB_PATTERN_MAX);
	sb_buf_init(&re, 4 * SB_PATTERN_MAX);
	/* Without any special character it means itself, and that is found faster. */
	if (!literal && strpbrk(text, SPECIAL)) {
		r = translate(text, &re, err);
		if (r < 0)
			return r;
		out->re = sb_linear_new((char *)re.data, re.len, why, sizeof why);
		if (!out->re)
			return sb_fail(err, SB_E_INVAL, "grep pattern: %s", why);
	}
	out->must = out->re ? find_must((char *)re.data) : strdup(text);
	if (!out->must) {
		sb_pattern_free(out);
		return sb_fail(err, SB_E_NOMEM, "pattern");
	}
	out->must_len = strlen(out->must);
	return 0;
}

void
sb_pattern_free(struct sb_pattern *p)
{
	sb_linear_free(p->re);
	free(p->must);
	*p = (struct sb_pattern){ 0 };
}

const char *
sb_pattern_find(const struct sb_pattern *p, const char *data, const char *from, const char *end,
	const char **line_end)
{
	while (from < end) {
		const char *hit = p->must_len ?
			memmem(from, (size_t)(end - from), p->must, p->must_len) :
			from;
		const char *start, *stop;
		size_t len;

		if (!hit)
			return NULL;
		start = hit > data ? memrchr(data, '\n', (size_t)(hit - data)) : NULL;
		start = start ? start + 1 : data;
		stop = memchr(hit, '\n', (size_t)(end - hit));
		stop = stop ? stop : end;
		len = (size_t)(stop - start);
		if (!p->re ||
			sb_linear_matches(p->re, start,
				len < SB_PATTERN_LINE ? len : SB_PATTERN_LINE)) {
			*line_end = stop;
			return start;
		}
		from = stop < end ? stop + 1 : end;
	}
	return NULL;
}
