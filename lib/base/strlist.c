/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/strlist.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <base/array.h>

/* Takes `s` over, also on failure; NULL is one. */
static void
add_owned(struct sb_strlist *l, char *s)
{
	void *v = l->v;

	if (!s || l->failed || !sb_array_grow(&v, &l->cap, l->n + 2, sizeof *l->v)) {
		l->failed = SB_E_NOMEM;
		free(s);
		return;
	}
	l->v = v;
	l->v[l->n++] = s;
	l->v[l->n] = NULL;
}

void
sb_strlist_add(struct sb_strlist *l, const char *s)
{
	if (!l->failed)
		add_owned(l, strdup(s));
}

/* A new string; NULL: no memory. */
static char *formatted(const char *fmt, va_list ap) SB_PRINTF(1, 0);

static char *
formatted(const char *fmt, va_list ap)
{
	char *s = NULL;

	return vasprintf(&s, fmt, ap) < 0 ? NULL : s;
}

void
sb_strlist_addf(struct sb_strlist *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!l->failed)
		add_owned(l, formatted(fmt, ap));
	va_end(ap);
}

void
sb_strlist_add_all(struct sb_strlist *l, const char *const *v)
{
	for (; v && *v; v++)
		sb_strlist_add(l, *v);
}

void
sb_strlist_join(struct sb_strlist *l, const struct sb_strlist *other)
{
	for (size_t i = 0; i < other->n; i++)
		sb_strlist_add(l, other->v[i]);
	if (other->failed)
		l->failed = other->failed;
}

/* How long KEY is. */
static size_t
key_len(const char *pair)
{
	return strcspn(pair, "=");
}

static bool
has_key(const char *pair, const char *key, size_t len)
{
	return strncmp(pair, key, len) == 0 && key_len(pair) == len;
}

/* Takes `pair` over, also on failure; NULL is one. */
static void
put_owned(struct sb_strlist *l, char *pair)
{
	for (size_t i = 0; pair && i < l->n; i++)
		if (has_key(l->v[i], pair, key_len(pair))) {
			free(l->v[i]);
			l->v[i] = pair;
			return;
		}
	add_owned(l, pair);
}

void
sb_strlist_put(struct sb_strlist *l, const char *pair)
{
	if (!l->failed)
		put_owned(l, strdup(pair));
}

void
sb_strlist_putf(struct sb_strlist *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!l->failed)
		put_owned(l, formatted(fmt, ap));
	va_end(ap);
}

int
sb_strlist_check(const struct sb_strlist *l, struct sb_error *err)
{
	if (!l->failed)
		return 0;
	return sb_fail(err, l->failed, "list of %zu strings: out of memory", l->n + 1);
}

void
sb_strlist_free(struct sb_strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct sb_strlist){ 0 };
}

size_t
sb_strlist_count(const char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

const char *
sb_strlist_get(const char *const *v, const char *key)
{
	size_t len = strlen(key);

	for (; v && *v; v++)
		if (has_key(*v, key, len) && (*v)[len])
			return *v + len + 1;
	return NULL;
}

bool
sb_strlist_has(const char *const *v, const char *s)
{
	for (; v && *v; v++)
		if (strcmp(*v, s) == 0)
			return true;
	return false;
}
