/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_PATTERN_H
#define SB_HOST_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include <base/cleanup.h>
#include <sb/error.h>

struct sb_linear;

/* A pattern to search lines for. Immutable once made, so safe from several threads. */
struct sb_pattern {
	struct sb_linear *re; /* NULL: it is `must` itself */
	char *must;           /* every match contains it; "": nothing is known */
	size_t must_len;
};

#define SB_PATTERN_MAX 4096

/*
 * The syntax of RE2 (which is that of Perl without back references and look-around), and what
 * POSIX adds to it: `\<` and `\>` for the ends of words, `{,n}`, quantifiers one behind the other.
 * SB_E_INVAL tells what is wrong.
 */
int sb_pattern_make(const char *text, bool literal, struct sb_pattern *out, struct sb_error *err);
void sb_pattern_free(struct sb_pattern *p);
SB_CLEANUP_VALUE(sb_pattern, sb_pattern_free)
/*
 * The next line with a match at or after `from`: its first byte, or NULL. `end` is the end of the
 * data; `line_end` is set. A line is searched for SB_PATTERN_LINE bytes.
 */
#define SB_PATTERN_LINE 65536
const char *sb_pattern_find(const struct sb_pattern *p, const char *data, const char *from,
	const char *end, const char **line_end);

#endif
