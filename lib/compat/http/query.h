/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_QUERY_H
#define SB_COMPAT_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include <base/buf.h>
#include <base/strlist.h>

/*
 * The target of a request, taken apart: "/a/b%2Fc?x=1&y=a+b" has the segments "a" and "b/c" and the
 * pairs x=1 and y="a b". Each text is decoded once.
 */
#define SB_QUERY_SEGMENTS_MAX 32
#define SB_QUERY_PAIRS_MAX 256

struct sb_query {
	struct sb_strlist segments;
	struct sb_strlist pairs; /* name, value, name, value, ... */
};

/* SB_E_INVAL for a bad percent sign, a NUL, or more segments or pairs than there may be. */
int sb_query_parse(const char *target, struct sb_query *out, struct sb_error *err);
/* The same for a form: only pairs. */
int sb_query_form(const char *text, struct sb_query *out, struct sb_error *err);
void sb_query_free(struct sb_query *q);
SB_CLEANUP_VALUE(sb_query, sb_query_free)

/* Whether the segments from the one of number `from` on are "/a/b"; "*" stands for any one. */
bool sb_query_matches(const struct sb_query *q, size_t from, const char *path);
/* The first value of that name, or NULL. */
const char *sb_query_get(const struct sb_query *q, const char *name);

/*
 * Appends the decoded text; `plus` stands for a blank in forms. SB_E_INVAL as above.
 */
int sb_query_decode(const char *s, size_t len, bool plus, struct sb_buf *out, struct sb_error *err);
/* Appends what decodes to `s`: all but letters, digits and "-._~" is escaped. */
void sb_query_encode(const char *s, size_t len, struct sb_buf *out);

#endif
