/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/server/strict.h>

#include <string.h>
#include <strings.h>

/* RFC 9110's token: what a header's name is made of. */
static bool
is_token(const char *s, size_t len)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < len; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
			    (s[i] >= '0' && s[i] <= '9') || (s[i] && strchr(marks, s[i]))))
			return false;
	return len > 0;
}

/* Text, blanks, and bytes beyond ASCII, which mean nothing here but are allowed. */
static bool
is_value(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f)
			return false;
	return true;
}

bool
sb_rpc_strict_target(const char *target)
{
	for (const char *p = target; *p; p++)
		if (*p <= ' ' || *p > '~')
			return false;
	return target[0] != '\0';
}

static bool
is_named(const char *s, size_t len, const char *name)
{
	return len == strlen(name) && strncasecmp(s, name, len) == 0;
}

void
sb_rpc_strict_count(struct sb_rpc_strict *s, const char *name, size_t len, const char *value)
{
	value += strspn(value, " \t");
	if (is_named(name, len, "Host")) {
		s->hosts++;
	} else if (is_named(name, len, "Content-Length")) {
		size_t digits = strspn(value, "0123456789");

		s->lengths++;
		s->length_ok = digits > 0 && value[digits] == '\0';
	} else if (is_named(name, len, "Transfer-Encoding")) {
		s->codings++;
		s->coding_ok = strcasecmp(value, "chunked") == 0;
	}
}

const char *
sb_rpc_strict_lines(const char *lines, size_t len, struct sb_rpc_strict *out)
{
	const char *p = lines, *end = lines + len;

	*out = (struct sb_rpc_strict){ 0 };
	while (p < end && *p) {
		const char *colon = memchr(p, '\0', (size_t)(end - p));
		const char *value = colon ? colon + 1 : NULL;
		const char *stop = value ? memchr(value, '\0', (size_t)(end - value)) : NULL;

		if (!is_token(p, colon ? (size_t)(colon - p) : 0))
			return "a header's name is not one, or its line is folded";
		if (!stop || end - stop < 2 || stop[1])
			return "a line of the header does not end in CRLF, or there is a NUL in it";
		if (!is_value(value, (size_t)(stop - value)))
			return "a control character in the header";
		sb_rpc_strict_count(out, p, (size_t)(colon - p), value);
		p = stop + 2;
	}
	if (end - p != 2 || p[0] || p[1])
		return "a line of the header does not end in CRLF, or there is a NUL in it";
	return NULL;
}

const char *
sb_rpc_strict_judge(const struct sb_rpc_strict *s, const char *version)
{
	bool old = strcmp(version, "HTTP/1.0") == 0;

	if (!old && strcmp(version, "HTTP/1.1") != 0)
		return "the version must be HTTP/1.1";
	if (s->hosts > 1 || (s->hosts == 0 && !old))
		return "a request has one Host";
	if (s->lengths > 1)
		return "more than one Content-Length";
	if (s->lengths && s->codings)
		return "Content-Length and Transfer-Encoding exclude each other";
	if (s->lengths && !s->length_ok)
		return "Content-Length is a number";
	if (s->codings && (s->codings > 1 || !s->coding_ok || old))
		return "the only Transfer-Encoding is chunked";
	return NULL;
}
