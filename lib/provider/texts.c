/* SPDX-License-Identifier: MIT */
/* Lists of texts as the public structs hold them (declared in sb/sandbox.h). */
#include "config.h"

#include <sb/sandbox.h>

#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/str.h>

size_t
sb_texts_count(const char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

void
sb_texts_free(char **v)
{
	for (size_t i = 0; v && v[i]; i++)
		free(v[i]);
	free(v);
}

int
sb_texts_copy(const char *const *v, char ***out, struct sb_error *err)
{
	size_t n = sb_texts_count(v);
	char **copy;

	if (!v) {
		*out = NULL;
		return 0;
	}
	copy = calloc(n + 1, sizeof *copy);
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = strdup(v[i]);
		if (!copy[i]) {
			sb_texts_free(copy);
			copy = NULL;
		}
	}
	if (!copy)
		return sb_fail(err, SB_E_NOMEM, "list of %zu texts: out of memory", n);
	*out = copy;
	return 0;
}

int
sb_texts_add(char ***v, const char *s, struct sb_error *err)
{
	size_t n = sb_texts_count((const char *const *)*v);
	char *text = strdup(s);
	char **grown = text ? reallocarray(*v, n + 2, sizeof *grown) : NULL;

	if (!grown) {
		free(text);
		return sb_fail(err, SB_E_NOMEM, "list of %zu texts: out of memory", n + 1);
	}
	grown[n] = text;
	grown[n + 1] = NULL;
	*v = grown;
	return 0;
}

/* Where KEY is in the list, or the count. */
static size_t
find(const char *const *v, const char *key)
{
	size_t len = strlen(key), i;

	for (i = 0; v && v[i]; i++)
		if (strncmp(v[i], key, len) == 0 && v[i][len] == '=')
			break;
	return i;
}

const char *
sb_texts_get(const char *const *v, const char *key)
{
	size_t i = find(v, key);

	return v && v[i] ? v[i] + strlen(key) + 1 : NULL;
}

int
sb_texts_set(char ***v, const char *key, const char *value, struct sb_error *err)
{
	sb_autofree char *pair = sb_str_printf("%s=%s", key, value);
	size_t i = find((const char *const *)*v, key);

	if (!pair)
		return sb_fail(err, SB_E_NOMEM, "%s: out of memory", key);
	if (!*v || !(*v)[i])
		return sb_texts_add(v, pair, err);
	free((*v)[i]);
	(*v)[i] = sb_steal(&pair);
	return 0;
}
