/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <cloud/aws/awsprofile.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>

/* Where the reader stands. */
struct reading {
	const char *want;
	struct sb_strmap *out;
	bool inside, found;
	char *group; /* the key that indented lines belong to; NULL: none */
	size_t line;
};

static char *
trimmed(const char *s, size_t len)
{
	while (len > 0 && isspace((unsigned char)*s)) {
		s++;
		len--;
	}
	while (len > 0 && isspace((unsigned char)s[len - 1]))
		len--;
	return strndup(s, len);
}

/* Up to a comment behind white space. */
static size_t
without_comment(const char *s, size_t len)
{
	for (size_t i = 1; i < len; i++)
		if ((s[i] == '#' || s[i] == ';') && isspace((unsigned char)s[i - 1]))
			return i;
	return len;
}

/* "[name]", also "[ name ]" and "[profile  name]", as one spelling. */
static int
section(struct reading *g, const char *s, size_t len, struct sb_error *err)
{
	const char *close = memchr(s, ']', len);
	sb_autofree char *name = NULL;
	char *o;

	if (!close)
		return sb_fail(err, SB_E_INVAL, "line %zu: a section without ']'", g->line);
	name = trimmed(s + 1, (size_t)(close - s - 1));
	if (!name)
		return sb_fail(err, SB_E_NOMEM, "profile");
	o = name;
	for (const char *c = name; *c; c++)
		if (!isspace((unsigned char)*c))
			*o++ = *c;
		else if (o > name && o[-1] != ' ')
			*o++ = ' ';
	*o = '\0';
	g->inside = strcmp(name, g->want) == 0;
	g->found |= g->inside;
	free(sb_steal(&g->group));
	return 0;
}

static int
setting(struct reading *g, const char *s, size_t len, bool indented, struct sb_error *err)
{
	const char *eq;
	sb_autofree char *key = NULL;
	sb_autofree char *value = NULL;
	sb_autofree char *full = NULL;

	len = without_comment(s, len);
	eq = memchr(s, '=', len);
	if (!eq || eq == s) {
		/* The rest of a value that goes on over lines: none that we know does. */
		if (indented)
			return 0;
		return sb_fail(err, SB_E_INVAL, "line %zu: no \"key = value\"", g->line);
	}
	key = trimmed(s, (size_t)(eq - s));
	value = trimmed(eq + 1, len - (size_t)(eq + 1 - s));
	if (!key || !value)
		return sb_fail(err, SB_E_NOMEM, "profile");
	for (char *c = key; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (indented && g->group) {
		full = sb_str_printf("%s.%s", g->group, key);
		return full ? sb_strmap_set(g->out, full, value, err) :
			      sb_fail(err, SB_E_NOMEM, "profile");
	}
	free(g->group);
	g->group = strdup(key);
	return sb_strmap_set(g->out, key, value, err);
}

int
sb_awsprofile_parse(const char *text, size_t len, const char *name, struct sb_strmap *out,
	struct sb_error *err)
{
	struct reading g = { .want = name, .out = out };
	const char *p = text, *end = text + len;
	int r = 0;

	if (len > SB_AWSPROFILE_TEXT_MAX)
		return sb_fail(err, SB_E_LIMIT, "more than %zu bytes", SB_AWSPROFILE_TEXT_MAX);
	if (memchr(text, '\0', len))
		return sb_fail(err, SB_E_INVAL, "it is no text");
	while (p < end && r == 0) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const char *stop = nl ? nl : end;
		const char *s = p;

		g.line++;
		while (s < stop && isspace((unsigned char)*s))
			s++;
		if (s == stop || *s == '#' || *s == ';')
			;
		else if (*s == '[' && s == p)
			r = section(&g, s, (size_t)(stop - s), err);
		else if (g.inside)
			r = setting(&g, s, (size_t)(stop - s), s > p, err);
		p = nl ? nl + 1 : end;
	}
	free(g.group);
	return r < 0 ? r : g.found;
}
