/* SPDX-License-Identifier: MIT */
#ifndef SB_STRLIST_H
#define SB_STRLIST_H

#include <stdbool.h>
#include <stddef.h>

#include <sb/error.h>

/*
 * A list of owned strings; `v` is NULL or NULL-terminated. Zero-initialise. An append without
 * memory changes nothing and sticks: every later append is left out too, so a run of appends is
 * checked once with sb_strlist_check, before `v` is used. Calls that take a struct with such lists
 * check them.
 */
struct sb_strlist {
	char **v;
	size_t n;
	size_t cap;
	int failed; /* 0 or SB_E_NOMEM */
};

/* Appends a copy. */
SB_API void sb_strlist_add(struct sb_strlist *l, const char *s);
SB_API void sb_strlist_addf(struct sb_strlist *l, const char *fmt, ...) SB_PRINTF(2, 3);
/* Appends copies of a NULL-terminated list, which may be NULL. */
SB_API void sb_strlist_add_all(struct sb_strlist *l, const char *const *v);
/* Appends copies of what `other` holds; if `other` has failed, so has `l` then. */
SB_API void sb_strlist_join(struct sb_strlist *l, const struct sb_strlist *other);

/* Lists of "KEY=value": a copy of `pair` replaces the one of the same KEY, or is appended. */
SB_API void sb_strlist_put(struct sb_strlist *l, const char *pair);
SB_API void sb_strlist_putf(struct sb_strlist *l, const char *fmt, ...) SB_PRINTF(2, 3);

/* 0, or the sticky failure as an error. */
SB_API int sb_strlist_check(const struct sb_strlist *l, struct sb_error *err);

/* Leaves an empty list that has not failed. */
SB_API void sb_strlist_free(struct sb_strlist *l);

/* The strings for a call that borrows a list: NULL-terminated, or NULL when there are none. */
static inline const char *const *
sb_strlist_borrow(const struct sb_strlist *l)
{
	return (const char *const *)l->v;
}

/*
 * Of a borrowed list (NULL-terminated or NULL): how many there are; the value of KEY, or NULL;
 * whether the text is in it.
 */
SB_API size_t sb_strlist_count(const char *const *v);
SB_API const char *sb_strlist_get(const char *const *v, const char *key);
SB_API bool sb_strlist_has(const char *const *v, const char *s);

#endif
