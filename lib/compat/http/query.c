/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/http/query.h>

#include <string.h>

#include <base/str.h>

int
sb_query_decode(const char *s, size_t len, bool plus, struct sb_buf *out, struct sb_error *err)
{
	for (size_t i = 0; i < len; i++) {
		char c = s[i];

		if (c == '%') {
			int hi = -1, lo = -1;

			if (len - i > 2) {
				hi = sb_str_hex_digit(s[i + 1]);
				lo = sb_str_hex_digit(s[i + 2]);
			}
			if (hi < 0 || lo < 0)
				return sb_fail(err, SB_E_INVAL,
					"the address has a percent sign without two digits");
			c = (char)(hi * 16 + lo);
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		if (c == '\0')
			return sb_fail(err, SB_E_INVAL, "the address has a NUL");
		sb_buf_add_char(out, c);
	}
	return sb_buf_check(out, "address", err);
}

void
sb_query_encode(const char *s, size_t len, struct sb_buf *out)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			(c != '\0' && strchr("-._~", c)))
			sb_buf_add_char(out, (char)c);
		else
			sb_buf_addf(out, "%%%02X", c);
	}
}

static int
add(struct sb_strlist *l, const char *s, size_t len, bool plus, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	sb_buf_init(&text, len);
	r = sb_query_decode(s, len, plus, &text, err);
	if (r < 0)
		return r;
	sb_strlist_add(l, (const char *)text.data);
	return sb_strlist_check(l, err);
}

static int
parse_pairs(const char *s, struct sb_query *q, struct sb_error *err)
{
	int r = 0;

	while (*s && r == 0) {
		size_t len = strcspn(s, "&");
		size_t name = strcspn(s, "=&");

		if (q->pairs.n >= (size_t)2 * SB_QUERY_PAIRS_MAX)
			return sb_fail(err, SB_E_INVAL, "the address has more than %d parameters",
				SB_QUERY_PAIRS_MAX);
		if (len > 0) {
			r = add(&q->pairs, s, name, true, err);
			if (r == 0)
				r = add(&q->pairs, name < len ? s + name + 1 : "",
					name < len ? len - name - 1 : 0, true, err);
		}
		s += len + (s[len] == '&');
	}
	return r;
}

static int
parse_path(const char *s, size_t len, struct sb_query *q, struct sb_error *err)
{
	const char *end = s + len;
	int r = 0;

	while (s < end && r == 0) {
		const char *slash = memchr(s, '/', (size_t)(end - s));
		size_t n = (size_t)((slash ? slash : end) - s);

		if (q->segments.n >= SB_QUERY_SEGMENTS_MAX)
			return sb_fail(err, SB_E_INVAL, "the address has more than %d parts",
				SB_QUERY_SEGMENTS_MAX);
		if (n > 0)
			r = add(&q->segments, s, n, false, err);
		s += n + (slash != NULL);
	}
	return r;
}

int
sb_query_parse(const char *target, struct sb_query *out, struct sb_error *err)
{
	size_t path = strcspn(target, "?");
	int r;

	*out = (struct sb_query){ 0 };
	r = parse_path(target, path, out, err);
	if (r == 0 && target[path] == '?')
		r = parse_pairs(target + path + 1, out, err);
	if (r < 0)
		sb_query_free(out);
	return r;
}

int
sb_query_form(const char *text, struct sb_query *out, struct sb_error *err)
{
	int r;

	*out = (struct sb_query){ 0 };
	r = parse_pairs(text, out, err);
	if (r < 0)
		sb_query_free(out);
	return r;
}

void
sb_query_free(struct sb_query *q)
{
	sb_strlist_free(&q->segments);
	sb_strlist_free(&q->pairs);
	*q = (struct sb_query){ 0 };
}

const char *
sb_query_get(const struct sb_query *q, const char *name)
{
	for (size_t i = 0; i + 1 < q->pairs.n; i += 2)
		if (strcmp(q->pairs.v[i], name) == 0)
			return q->pairs.v[i + 1];
	return NULL;
}

bool
sb_query_matches(const struct sb_query *q, size_t from, const char *path)
{
	const char *p = path;

	for (size_t i = from; i < q->segments.n; i++) {
		size_t len;

		if (*p != '/')
			return false;
		len = strcspn(++p, "/");
		if (!(len == 1 && *p == '*') &&
			(strlen(q->segments.v[i]) != len || strncmp(p, q->segments.v[i], len) != 0))
			return false;
		p += len;
	}
	return *p == '\0' && q->segments.n > from;
}
