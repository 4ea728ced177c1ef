/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/tool/pattern.h>

#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <base/buf.h>

#define PATTERN_MAX 4096
/* A line is searched this far. */
#define LINE_BYTES_MAX 65536
/* Product of all counts in braces: what the automaton may be unrolled to. */
#define COUNTS_MAX 1000

bool
sb_pattern_glob(const char *pattern, const char *path)
{
	for (;;) {
		size_t plen = strcspn(pattern, "/"), len = strcspn(path, "/");
		char part[NAME_MAX + 1], name[NAME_MAX + 1];

		if (plen == 2 && strncmp(pattern, "**", 2) == 0) {
			pattern += pattern[2] ? 3 : 2;
			if (!*pattern)
				return true;
			for (const char *p = path; p;
				p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
				if (sb_pattern_glob(pattern, p))
					return true;
			return false;
		}
		if (plen > NAME_MAX || len > NAME_MAX)
			return false;
		memcpy(part, pattern, plen);
		part[plen] = '\0';
		memcpy(name, path, len);
		name[len] = '\0';
		if (fnmatch(part, name, FNM_PERIOD) != 0)
			return false;
		if (!pattern[plen] || !path[len])
			return !pattern[plen] && !path[len];
		pattern += plen + 1;
		path += len + 1;
	}
}

/* What the library's syntax says differently; refuses what it would do by trying all ways. */
static int
translate(const char *t, struct sb_buf *out, bool *icase, struct sb_error *err)
{
	bool in_set = false;
	double counts = 1;

	if (strncmp(t, "(?i)", 4) == 0) {
		*icase = true;
		t += 4;
	}
	for (; *t; t++) {
		if (*t == '\\' && t[1]) {
			t++;
			if (isdigit((unsigned char)*t) && *t != '0')
				return sb_fail(err, SB_E_INVAL,
					"grep pattern: back references are not supported");
			if (*t == 'd' || *t == 'D')
				sb_buf_add_str(out,
					in_set            ? "0-9" :
						*t == 'd' ? "[0-9]" :
							    "[^0-9]");
			else if (*t == 't' || *t == 'n')
				sb_buf_add_char(out, *t == 't' ? '\t' : '\n');
			else if (in_set && *t == 'w')
				sb_buf_add_str(out, "[:alnum:]_");
			else if (in_set && *t == 's')
				sb_buf_add_str(out, "[:space:]");
			else if (in_set)
				sb_buf_add_char(out, *t);
			else
				sb_buf_addf(out, "\\%c", *t);
			continue;
		}
		if (!in_set && *t == '(' && t[1] == '?') {
			if (t[2] != ':')
				return sb_fail(err, SB_E_INVAL,
					"grep pattern: (?%c is not supported", t[2] ? t[2] : ' ');
			sb_buf_add_char(out, '(');
			t += 2;
			continue;
		}
		if (!in_set && *t == '{' && isdigit((unsigned char)t[1])) {
			const char *comma = t + 1 + strspn(t + 1, "0123456789");
			unsigned long a = strtoul(t + 1, NULL, 10),
				      b = *comma == ',' ? strtoul(comma + 1, NULL, 10) : 0;

			counts *= a > b ? (double)a + 1 : (double)b + 1;
			if (counts > COUNTS_MAX)
				return sb_fail(err, SB_E_INVAL,
					"grep pattern: counts in braces are too large together");
		}
		if (!in_set && *t == '[') {
			in_set = true;
			sb_buf_add_char(out, *t);
			if (t[1] == '^')
				sb_buf_add_char(out, *++t);
			if (t[1] == ']')
				sb_buf_add_char(out, *++t);
			continue;
		}
		in_set = in_set && *t != ']';
		sb_buf_add_char(out, *t);
	}
	return sb_buf_check(out, "pattern", err);
}

/*
 * The longest run of plain characters outside of groups that every match must have; "" when there
 * are alternatives.
 */
static char *
find_must(const char *re)
{
	const char *best = "", *start = re;
	size_t best_len = 0;

	if (strpbrk(re, "|"))
		return strdup("");
	for (const char *p = re;; p++) {
		bool plain = *p && !strchr("\\.[]{}()*+?^$", *p);
		size_t len = (size_t)(p - start);

		if (plain)
			continue;
		/* What a quantifier follows may be missing. */
		if (*p && strchr("*?{", *p) && len > 0)
			len--;
		if (len > best_len) {
			best = start;
			best_len = len;
		}
		if (!*p)
			break;
		if (*p == '(') {
			/* A group may be optional: nothing in it counts. */
			int depth = 1;

			for (p++; *p && depth; p++)
				depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
			p--;
			if (!*p)
				break;
		} else if (*p == '[') {
			const char *close = strchr(p + 1 + (p[1] == '^') + 1, ']');

			if (!close)
				break;
			p = close;
		} else if (*p == '\\' && p[1]) {
			p++;
		}
		start = p + 1;
	}
	return strndup(best, best_len);
}

int
sb_pattern_make(const char *text, bool literal, struct sb_pattern *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf re = { 0 };
	int r;

	*out = (struct sb_pattern){ .literal = literal };
	if (!*text || strlen(text) > PATTERN_MAX)
		return sb_fail(err, SB_E_INVAL, "grep pattern must have 1 to %d bytes",
			PATTERN_MAX);
	sb_buf_init(&re, 4 * PATTERN_MAX);
	/* Without any special character it means itself, and that is found faster. */
	if (!literal && !strpbrk(text, "\\.[]{}()*+?^$|"))
		out->literal = literal = true;
	if (!literal) {
		char msg[200];

		r = translate(text, &re, &out->icase, err);
		if (r < 0)
			return r;
		r = regcomp(&out->re, (char *)re.data,
			REG_EXTENDED | REG_NOSUB | (out->icase ? REG_ICASE : 0));
		if (r != 0) {
			(void)regerror(r, &out->re, msg, sizeof msg);
			return sb_fail(err, SB_E_INVAL, "grep pattern: %s", msg);
		}
		out->compiled = true;
	}
	out->must = literal ? strdup(text) : out->icase ? strdup("") : find_must((char *)re.data);
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
	if (p->compiled)
		regfree(&p->re);
	free(p->must);
	*p = (struct sb_pattern){ 0 };
}

/* Does the expression match in the line? It is copied, because the library wants a string. */
static bool
line_matches(const struct sb_pattern *p, const char *line, size_t len)
{
	char small[1024];
	sb_autofree char *big = NULL;
	char *copy = small;

	if (p->literal)
		return true;
	len = len < LINE_BYTES_MAX ? len : LINE_BYTES_MAX;
	if (len >= sizeof small)
		copy = big = malloc(len + 1);
	if (!copy)
		return false;
	memcpy(copy, line, len);
	copy[len] = '\0';
	return regexec(&p->re, copy, 0, NULL, 0) == 0;
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

		if (!hit)
			return NULL;
		start = hit > data ? memrchr(data, '\n', (size_t)(hit - data)) : NULL;
		start = start ? start + 1 : data;
		stop = memchr(hit, '\n', (size_t)(end - hit));
		stop = stop ? stop : end;
		if (line_matches(p, start, (size_t)(stop - start))) {
			*line_end = stop;
			return start;
		}
		from = stop < end ? stop + 1 : end;
	}
	return NULL;
}
