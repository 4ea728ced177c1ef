/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/http/replyhead.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <base/str.h>

void
sb_replyhead_free(struct sb_replyhead *h)
{
	free(h->type);
	sb_strlist_free(&h->headers);
	*h = (struct sb_replyhead){ 0 };
}

bool
sb_replyhead_is_hop(const char *name)
{
	static const char *const hops[] = { "Connection", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding",
		"Upgrade", "Content-Length", "Expect", "Date", NULL };

	for (size_t i = 0; hops[i]; i++)
		if (strcasecmp(hops[i], name) == 0)
			return true;
	return false;
}

/* The length of the head with the empty line behind it; 0: it is not there yet. */
static size_t
end_of(const char *data, size_t len)
{
	const char *p = memmem(data, len, "\r\n\r\n", 4);

	return p ? (size_t)(p - data) + 4 : 0;
}

/* "HTTP/1.1 200 OK" */
static int
status_line(const char *line, struct sb_replyhead *out, struct sb_error *err)
{
	const char *p = line + 9;

	if ((strncmp(line, "HTTP/1.1 ", 9) != 0 && strncmp(line, "HTTP/1.0 ", 9) != 0) ||
		strspn(p, "0123456789") != 3 || (p[3] != ' ' && p[3] != '\0') || *p == '0')
		return sb_fail(err, SB_E_PROTO, "no status line of HTTP");
	out->status = (int)strtol(p, NULL, 10);
	return 0;
}

static bool
is_token(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s > '~' || strchr("\"(),/:;<=>?@[\\]{}", *s))
			return false;
	return true;
}

static bool
is_value(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' ? *s != '\t' : *s == 0x7f)
			return false;
	return true;
}

static int
header_line(char *line, struct sb_replyhead *out, struct sb_error *err)
{
	char *colon = strchr(line, ':'), *value, *end;

	if (!colon || colon == line)
		return sb_fail(err, SB_E_PROTO, "a header without a name");
	*colon = '\0';
	value = colon + 1 + strspn(colon + 1, " \t");
	for (end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t');)
		*--end = '\0';
	if (!is_token(line) || !is_value(value))
		return sb_fail(err, SB_E_PROTO, "a header with bytes that none has");
	if (strcasecmp(line, "Transfer-Encoding") == 0)
		return sb_fail(err, SB_E_PROTO, "a coded transfer was not asked for");
	if (strcasecmp(line, "Content-Length") == 0) {
		int64_t n;

		if (*value < '0' || *value > '9' || !sb_str_to_i64(value, 0, INT64_MAX, &n) ||
			(out->length >= 0 && out->length != n))
			return sb_fail(err, SB_E_PROTO, "its length cannot be read");
		out->length = n;
	} else if (strcasecmp(line, "Content-Type") == 0 && !out->type) {
		out->type = strdup(value);
		if (!out->type)
			return sb_fail(err, SB_E_NOMEM, "out of memory");
	} else if (!sb_replyhead_is_hop(line)) {
		if (out->headers.n >= (size_t)2 * SB_REPLYHEAD_LINES_MAX)
			return sb_fail(err, SB_E_PROTO, "more than %d headers",
				SB_REPLYHEAD_LINES_MAX);
		sb_strlist_add(&out->headers, line);
		sb_strlist_add(&out->headers, value);
	}
	return 0;
}

int
sb_replyhead_parse(const char *data, size_t len, struct sb_replyhead *out, size_t *used,
	struct sb_error *err)
{
	size_t n = end_of(data, len < SB_REPLYHEAD_MAX ? len : SB_REPLYHEAD_MAX);
	sb_autofree char *text = NULL;
	char *line, *next;
	int r;

	*out = (struct sb_replyhead){ .length = -1 };
	if (n == 0)
		return len >= SB_REPLYHEAD_MAX ? sb_fail(err, SB_E_PROTO, "a head without end") : 0;
	if (memchr(data, '\0', n))
		return sb_fail(err, SB_E_PROTO, "a head with a NUL");
	text = strndup(data, n - 4);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	next = strstr(text, "\r\n");
	if (next) {
		*next = '\0';
		next += 2;
	}
	r = is_value(text) ? status_line(text, out, err) :
			     sb_fail(err, SB_E_PROTO, "no status line of HTTP");
	for (line = next; r == 0 && line; line = next) {
		next = strstr(line, "\r\n");
		if (next) {
			*next = '\0';
			next += 2;
		}
		r = header_line(line, out, err);
	}
	if (r == 0)
		r = sb_strlist_check(&out->headers, err);
	if (r < 0) {
		sb_replyhead_free(out);
		return r;
	}
	*used = n;
	return 1;
}
