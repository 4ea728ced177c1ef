/* SPDX-License-Identifier: MIT */
/* Compiles one pattern of the exclude rules and matches paths against it. */
#include "config.h"

#include <sync/scan/rules-priv.h>

#include <assert.h>
#include <string.h>

/*
 * Patterns mean what they mean to git. Where git's two steps (cut the part without
 * special characters off, then match the rest) give an answer of their own, so do we:
 * in "foo**" of a pattern with a slash, "**" stands at the beginning of the rest, and
 * therefore crosses slashes.
 */

static bool
is_special(uint8_t c)
{
	return c == '*' || c == '?' || c == '[' || c == '\\';
}

static size_t
simple_length(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && !is_special((uint8_t)s[n]))
		n++;
	return n;
}

/*
 * The named classes, ASCII only, with git's idea of a space (no vertical tab, no form
 * feed).
 */
static int
named_class(const uint8_t *name, size_t len, uint8_t c)
{
	static const char *const names[] = { "alnum", "alpha", "blank", "cntrl", "digit", "graph",
		"lower", "print", "punct", "space", "upper", "xdigit" };
	bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z',
	     digit = c >= '0' && c <= '9';
	bool print = c >= 0x20 && c <= 0x7e, graph = print && c != ' ';
	size_t i;

	for (i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			break;
	switch (i) {
	case 0: return lower || upper || digit;
	case 1: return lower || upper;
	case 2: return c == ' ' || c == '\t';
	case 3: return c < 0x20 || c == 0x7f;
	case 4: return digit;
	case 5: return graph;
	case 6: return lower;
	case 7: return print;
	case 8: return graph && !lower && !upper && !digit;
	case 9: return c == ' ' || c == '\t' || c == '\n' || c == '\r';
	case 10: return upper;
	case 11: return digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
	default: return -1;
	}
}

/*
 * `p` is at a "[:" inside a class. Sets `*in` if `c` is in the named class, and returns
 * the position of its final ']'; returns `p` when there is no ":]" and the bracket is
 * an ordinary member; NULL when the class is malformed.
 */
static const uint8_t *
match_named_class(const uint8_t *p, const uint8_t *end, uint8_t c, bool *in)
{
	const uint8_t *name = p + 2, *close = memchr(name, ']', (size_t)(end - name));
	int hit;

	if (!close)
		return NULL;
	if (close == name || close[-1] != ':')
		return p;
	hit = named_class(name, (size_t)(close - name) - 1, c);
	if (hit < 0)
		return NULL;
	if (hit)
		*in = true;
	return close;
}

/*
 * Matches `c` against the class whose '[' is at `p`. Returns the position behind its
 * ']', or NULL when the class does not end or names an unknown class (which does not
 * depend on `c`).
 */
static const uint8_t *
match_class(const uint8_t *p, const uint8_t *end, uint8_t c, bool *out)
{
	bool negated, in = false, first = true;
	unsigned prev = 0;

	p++;
	negated = p < end && (*p == '!' || *p == '^');
	if (negated)
		p++;
	for (; p < end && (first || *p != ']'); p++, first = false) {
		unsigned member = *p;

		if (member == '\\') {
			if (++p == end)
				return NULL;
			member = *p;
			in |= c == member;
		} else if (member == '-' && prev && p + 1 < end && p[1] != ']') {
			if (*++p == '\\' && ++p == end)
				return NULL;
			in |= c >= prev && c <= *p;
			member = 0;
		} else if (member == '[' && p + 1 < end && p[1] == ':') {
			const uint8_t *q = match_named_class(p, end, c, &in);

			if (!q)
				return NULL;
			if (q == p)
				in |= c == '[';
			else
				member = 0;
			p = q;
		} else {
			in |= c == member;
		}
		prev = member;
	}
	if (p == end)
		return NULL;
	*out = in != negated && c != '/';
	return p + 1;
}

/*
 * What a run of stars at `p` of the pattern [start, end) is. `*after` is where the
 * pattern goes on.
 */
enum stars {
	STARS_ONE,      /* anything but a slash */
	STARS_ALL,      /* the rest, whatever it is */
	STARS_DIRS,     /* no or some directories; the slash is part of it */
	STARS_SOME_DIRS /* the same, at least one (the slash was escaped) */
};

static enum stars
parse_stars(const uint8_t *start, const uint8_t *p, const uint8_t *end, const uint8_t **after)
{
	const uint8_t *q = p;

	while (q < end && *q == '*')
		q++;
	*after = q;
	if (q - p < 2 || (p > start && p[-1] != '/'))
		return STARS_ONE;
	if (q == end)
		return STARS_ALL;
	if (*q == '/') {
		*after = q + 1;
		return STARS_DIRS;
	}
	if (*q == '\\' && q + 1 < end && q[1] == '/') {
		*after = q + 2;
		return STARS_SOME_DIRS;
	}
	return STARS_ONE;
}

/*
 * The state of one match: where pattern and text are, and where to go on after a
 * mismatch.
 */
struct glob {
	const uint8_t *start, *p, *pend;
	const uint8_t *t, *tend;
	const uint8_t *star_p, *star_t; /* behind the last '*' of this component; the text
					   it has not taken */
	const uint8_t *dirs_p, *dirs_t; /* the same for the last "**" */
};

/*
 * Only the last star of a component and the last "**" are ever tried again. That is
 * enough: stars cannot cross a slash, so once the pattern's slash is matched the
 * components before are settled; and what is between two "**" takes a fixed number of
 * components, so its first fit leaves the most to the second one. Each component of the
 * pattern meets each component of the text at most once.
 */
static bool
glob_retry(struct glob *g)
{
	if (g->star_p && g->star_t < g->tend && *g->star_t != '/') {
		g->t = ++g->star_t;
		g->p = g->star_p;
		return true;
	}
	if (g->dirs_p) {
		const uint8_t *slash = memchr(g->dirs_t, '/', (size_t)(g->tend - g->dirs_t));

		if (!slash)
			return false;
		g->t = g->dirs_t = slash + 1;
		g->p = g->dirs_p;
		g->star_p = NULL;
		return true;
	}
	return false;
}

/* Takes the stars at g->p in. False: this attempt failed. */
static bool
glob_stars(struct glob *g)
{
	const uint8_t *after;
	enum stars kind = parse_stars(g->start, g->p, g->pend, &after);

	switch (kind) {
	case STARS_ALL: g->t = g->tend; break;
	case STARS_DIRS:
	case STARS_SOME_DIRS:
		g->dirs_p = after;
		g->dirs_t = g->t;
		g->star_p = NULL;
		if (kind == STARS_SOME_DIRS)
			return false;
		break;
	case STARS_ONE:
		g->star_p = after;
		g->star_t = g->t;
		if (after == g->pend && !memchr(g->t, '/', (size_t)(g->tend - g->t)))
			g->t = g->tend;
		break;
	}
	g->p = after;
	return true;
}

/* One step for a pattern character that is no star. False: mismatch. */
static bool
glob_char(struct glob *g)
{
	uint8_t c;
	bool in;

	if (g->t == g->tend)
		return false;
	c = *g->t;
	switch (*g->p) {
	case '?':
		if (c == '/')
			return false;
		g->p++;
		break;
	case '[':
		g->p = match_class(g->p, g->pend, c, &in);
		if (!g->p || !in)
			return false;
		break;
	case '\\':
		g->p++;
		/* fallthrough */
	default:
		if (*g->p != c)
			return false;
		if (c == '/')
			g->star_p = NULL;
		g->p++;
		break;
	}
	g->t++;
	return true;
}

/* The whole text against a pattern that glob_valid accepted. */
static bool
glob_match(const uint8_t *p, size_t plen, const uint8_t *t, size_t tlen)
{
	struct glob g = { .start = p, .p = p, .pend = p + plen, .t = t, .tend = t + tlen };

	for (;;) {
		bool ok;

		if (g.p == g.pend) {
			if (g.t == g.tend)
				return true;
			ok = false;
		} else if (*g.p == '*') {
			ok = glob_stars(&g);
		} else {
			ok = glob_char(&g);
		}
		if (!ok && !glob_retry(&g))
			return false;
	}
}

/*
 * False when the pattern has a class or an escape without its end, which can match
 * nothing. Sets `*tail` to the number of ordinary bytes at the end that every matching
 * text ends with.
 */
static bool
glob_valid(const uint8_t *start, size_t len, size_t *tail)
{
	const uint8_t *p = start, *end = start + len, *plain = start;
	bool ignored;

	while (p < end) {
		switch (*p) {
		case '*':
			(void)parse_stars(start, p, end, &p);
			plain = p;
			break;
		case '?': plain = ++p; break;
		case '[':
			p = match_class(p, end, 0, &ignored);
			if (!p)
				return false;
			plain = p;
			break;
		case '\\':
			if (p + 1 == end)
				return false;
			p += 2;
			plain = p;
			break;
		default: p++; break;
		}
	}
	*tail = (size_t)(end - plain);
	return true;
}

/* The kind of a pattern without a slash. */
static enum sb_rule_kind
name_kind(const char *p, size_t len, size_t head)
{
	size_t stars = 0;

	if (head == len)
		return SB_RULE_NAME;
	if (p[0] == '*' && simple_length(p + 1, len - 1) == len - 1)
		return SB_RULE_NAME_SUFFIX;
	while (head + stars < len && p[head + stars] == '*')
		stars++;
	return head + stars == len ? SB_RULE_NAME_PREFIX : SB_RULE_NAME_GLOB;
}

void
sb_rules_pattern_compile(struct sb_rule *out, const char *text, size_t len)
{
	struct sb_rule r = { .text = text, .len = (uint16_t)len };
	size_t start = 0, end = len, tail = 0;
	bool in_path;

	assert(len > 0 && len <= SB_RULE_TEXT_MAX);
	if (text[0] == '!') {
		r.negative = true;
		start = 1;
	}
	if (end > start && text[end - 1] == '/') {
		r.dir_only = true;
		end--;
	}
	in_path = memchr(text + start, '/', end - start) != NULL;
	if (in_path && text[start] == '/')
		start++;
	r.start = (uint16_t)start;
	r.plen = (uint16_t)(end - start);
	r.head = (uint16_t)simple_length(text + start, r.plen);
	if (r.plen == 0 ||
		!glob_valid((const uint8_t *)text + start + r.head, (size_t)(r.plen - r.head),
			&tail))
		r.kind = SB_RULE_NEVER;
	else if (!in_path)
		r.kind = name_kind(text + start, r.plen, r.head);
	else
		r.kind = r.head == r.plen ? SB_RULE_PATH : SB_RULE_PATH_GLOB;
	r.tail = (uint16_t)tail;
	if (r.kind != SB_RULE_NEVER && (r.head == r.plen || tail > 0))
		r.last = (uint8_t)text[end - 1];
	*out = r;
}

static bool
glob_rule_match(const struct sb_rule *r, const char *p, const char *t, size_t tlen)
{
	if (tlen < (size_t)r->head + r->tail || memcmp(p, t, r->head) != 0 ||
		memcmp(p + r->plen - r->tail, t + tlen - r->tail, r->tail) != 0)
		return false;
	return glob_match((const uint8_t *)p + r->head, (size_t)(r->plen - r->head),
		(const uint8_t *)t + r->head, tlen - r->head);
}

bool
sb_rules_pattern_match(const struct sb_rule *r, const char *rel, size_t rel_len, const char *name,
	size_t name_len, bool is_dir)
{
	const char *p = r->text + r->start;
	size_t plen = r->plen;

	if (r->dir_only && !is_dir)
		return false;
	switch ((enum sb_rule_kind)r->kind) {
	case SB_RULE_NEVER: return false;
	case SB_RULE_NAME: return name_len == plen && memcmp(name, p, plen) == 0;
	case SB_RULE_NAME_SUFFIX:
		return name_len >= plen - 1 &&
			memcmp(name + name_len - (plen - 1), p + 1, plen - 1) == 0;
	case SB_RULE_NAME_PREFIX: return name_len >= r->head && memcmp(name, p, r->head) == 0;
	case SB_RULE_NAME_GLOB: return glob_rule_match(r, p, name, name_len);
	case SB_RULE_PATH: return rel_len == plen && memcmp(rel, p, plen) == 0;
	case SB_RULE_PATH_GLOB: return glob_rule_match(r, p, rel, rel_len);
	}
	return false;
}
