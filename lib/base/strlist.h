/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_STRLIST_H
#define SB_BASE_STRLIST_H

#include <stddef.h>

#include <base/cleanup.h>
#include <sb/error.h>

/*
 * A list of owned strings; `v` is NULL or NULL-terminated. Zero-initialise. An append without
 * memory changes nothing and sticks: every later append is left out too, so a run of appends is
 * checked once with sb_strlist_check, before `v` is used.
 */
struct sb_strlist {
	char **v;
	size_t n;
	size_t cap;
	int failed; /* 0 or SB_E_NOMEM */
};

/* Appends a copy. */
void sb_strlist_add(struct sb_strlist *l, const char *s);
void sb_strlist_addf(struct sb_strlist *l, const char *fmt, ...) SB_PRINTF(2, 3);
/* Appends copies of a NULL-terminated list, which may be NULL. */
void sb_strlist_add_all(struct sb_strlist *l, const char *const *v);

/* 0, or the sticky failure as an error. */
int sb_strlist_check(const struct sb_strlist *l, struct sb_error *err);

/* Leaves an empty list that has not failed. */
void sb_strlist_free(struct sb_strlist *l);
SB_CLEANUP_VALUE(sb_strlist, sb_strlist_free)

#endif
