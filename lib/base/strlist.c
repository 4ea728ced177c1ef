/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/strlist.h>

#include <stdarg.h>
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

void
sb_strlist_addf(struct sb_strlist *l, const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;

	if (l->failed)
		return;
	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	add_owned(l, s);
}

void
sb_strlist_add_all(struct sb_strlist *l, const char *const *v)
{
	for (; v && *v; v++)
		sb_strlist_add(l, *v);
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
