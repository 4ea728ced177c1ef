/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_PATTERN_H
#define SB_HOST_PATTERN_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include <base/cleanup.h>
#include <sb/error.h>

/*
 * Matches a path against a pattern whose parts are shell globs; a part "**" stands for any number
 * of parts.
 */
bool sb_pattern_glob(const char *pattern, const char *path);

/* A pattern to search lines for. */
struct sb_pattern {
	bool literal, icase;
	char *must; /* every match contains it; "" : nothing is known */
	size_t must_len;
	regex_t re;
	bool compiled;
};
/*
 * The usual syntax, in the part of it that runs in linear time: no back references, no look-around.
 * \d \w \s \b, (?:...), (?i) at the beginning. SB_E_INVAL tells what is wrong.
 */
int sb_pattern_make(const char *text, bool literal, struct sb_pattern *out, struct sb_error *err);
void sb_pattern_free(struct sb_pattern *p);
SB_CLEANUP_VALUE(sb_pattern, sb_pattern_free)
/*
 * The next line with a match at or after `from`: its first byte, or NULL. `end` is the end of the
 * data; `line_end` is set.
 */
const char *sb_pattern_find(const struct sb_pattern *p, const char *data, const char *from,
	const char *end, const char **line_end);

#endif
