/* SPDX-License-Identifier: MIT */
/* Reads exclude rules from lines of text, as git reads a .gitignore file. */
#include "config.h"

#include <sync/scan/rules-priv.h>

#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>

static const char *
source_name(enum sb_rules_source src)
{
	switch (src) {
	case SB_RULES_BUILTIN: return "built-in excludes";
	case SB_RULES_FROM_FILE: return "exclude file";
	case SB_RULES_GITIGNORE: return ".gitignore";
	case SB_RULES_SBSYNCIGNORE: return ".sbsyncignore";
	case SB_RULES_COMMAND: return "exclude option";
	case SB_RULES_GITEXCLUDE: return "git's exclude file";
	case SB_RULES_TRACKED:
	case SB_RULES_SOURCES: break;
	}
	return "exclude rules";
}

/* Blanks at the end are no part of a pattern, unless a backslash stands before. */
static size_t
trimmed_length(const char *s, size_t len)
{
	size_t keep = len;
	bool in_blanks = false;

	for (size_t i = 0; i < len; i++) {
		if (s[i] == ' ') {
			if (!in_blanks)
				keep = i;
			in_blanks = true;
			continue;
		}
		in_blanks = false;
		if (s[i] == '\\' && ++i == len)
			return len;
	}
	return in_blanks ? keep : len;
}

/*
 * The pattern in a line (without its newline): its length, 0 for a blank line or a
 * comment. A NUL ends it.
 */
static size_t
pattern_length(const char *line, size_t len)
{
	const char *nul;

	if (len == 0 || line[0] == '#')
		return 0;
	if (line[len - 1] == '\r')
		len--;
	nul = memchr(line, 0, len);
	if (nul)
		len = (size_t)(nul - line);
	return trimmed_length(line, len);
}

struct pattern_lines {
	const char **texts;
	uint16_t *lens;
	size_t n;
	int too_long;
};

static int
split_lines(struct pattern_lines *out, enum sb_rules_source src, const char *dir, const char *text,
	size_t len, struct sb_error *err)
{
	const char *p = text, *end = text + len;
	size_t number = 0;

	if (len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
		p += 3;
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t line_len = (size_t)((nl ? nl : end) - p), n = pattern_length(p, line_len);

		number++;
		if (n > SB_RULE_TEXT_MAX && src != SB_RULES_FROM_FILE) {
			/* Nobody asked for it here and now: one odd line stops no sync. */
			out->too_long++;
			p += line_len + 1;
			continue;
		}
		if (n > SB_RULE_TEXT_MAX)
			return sb_fail(err, SB_E_LIMIT,
				"%s%s%s, line %zu: a pattern of %zu bytes, at most %u "
				"are allowed; shorten it",
				dir, *dir ? "/" : "", source_name(src), number, n,
				SB_RULE_TEXT_MAX);
		if (n > 0) {
			out->texts[out->n] = p;
			out->lens[out->n++] = (uint16_t)n;
		}
		p += line_len + 1;
	}
	return 0;
}

int
sb_rules_add_file(struct sb_rules *r, enum sb_rules_source src, const char *dir, const char *text,
	size_t len, struct sb_error *err)
{
	sb_autofree const char **texts = NULL;
	sb_autofree uint16_t *lens = NULL;
	struct pattern_lines l = { 0 };
	size_t max = 1, dir_len = strlen(dir);
	int ret;

	if (!sb_rules_dir_ok(dir, dir_len))
		return sb_fail(err, SB_E_INVAL, "%s in \"%.200s\": not a relative directory",
			source_name(src), dir);
	if (len > SB_RULES_FILE_MAX)
		return sb_fail(err, SB_E_LIMIT, "%s%s%s: %zu bytes, at most %u are allowed", dir,
			*dir ? "/" : "", source_name(src), len, SB_RULES_FILE_MAX);
	for (size_t i = 0; i < len; i++)
		max += text[i] == '\n';
	texts = malloc(max * sizeof *texts);
	lens = malloc(max * sizeof *lens);
	if (!texts || !lens)
		return sb_fail(err, SB_E_NOMEM, "exclude rules: out of memory");
	l.texts = texts;
	l.lens = lens;
	ret = split_lines(&l, src, dir, text, len, err);
	if (ret < 0)
		return ret;
	ret = sb_rules_add_texts(r, src, dir, dir_len, texts, lens, l.n, err);
	return ret < 0 ? ret : l.too_long;
}

int
sb_rules_add(struct sb_rules *r, enum sb_rules_source src, const char *pattern,
	struct sb_error *err)
{
	size_t len = strlen(pattern);
	uint16_t len16;

	if (src == SB_RULES_FROM_FILE)
		return sb_rules_add_file(r, src, "", pattern, len, err);
	if (len == 0)
		return sb_fail(err, SB_E_INVAL, "%s: empty pattern", source_name(src));
	if (len > SB_RULE_TEXT_MAX)
		return sb_fail(err, SB_E_LIMIT,
			"%s: a pattern of %zu bytes, at most %u are allowed (%.40s...)",
			source_name(src), len, SB_RULE_TEXT_MAX, pattern);
	len16 = (uint16_t)len;
	return sb_rules_add_texts(r, src, "", 0, &pattern, &len16, 1, err);
}
