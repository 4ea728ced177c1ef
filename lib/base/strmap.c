/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/strmap.h>

#include <stdlib.h>
#include <string.h>

#include <base/array.h>

static struct sb_strpair *
find(const struct sb_strmap *m, const char *key)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->v[i].key, key))
			return &m->v[i];
	return NULL;
}

int
sb_strmap_set(struct sb_strmap *m, const char *key, const char *value, struct sb_error *err)
{
	sb_autofree char *val = strdup(value);
	sb_autofree char *k = NULL;
	struct sb_strpair *at = find(m, key);
	void *v = m->v;

	if (!val)
		return sb_fail(err, SB_E_NOMEM, "value of %s: out of memory", key);
	if (at) {
		free(at->value);
		at->value = sb_steal(&val);
		return 0;
	}
	k = strdup(key);
	if (!k)
		return sb_fail(err, SB_E_NOMEM, "key %s: out of memory", key);
	if (!sb_array_grow(&v, &m->cap, m->n + 1, sizeof *m->v))
		return sb_fail(err, SB_E_NOMEM, "key %s: out of memory", key);
	m->v = v;
	m->v[m->n++] = (struct sb_strpair){ .key = sb_steal(&k), .value = sb_steal(&val) };
	return 0;
}

const char *
sb_strmap_get(const struct sb_strmap *m, const char *key)
{
	const struct sb_strpair *at = find(m, key);

	return at ? at->value : NULL;
}

bool
sb_strmap_del(struct sb_strmap *m, const char *key)
{
	struct sb_strpair *at = find(m, key);

	if (!at)
		return false;
	free(at->key);
	free(at->value);
	m->n--;
	memmove(at, at + 1, (size_t)(m->v + m->n - at) * sizeof *at);
	return true;
}

void
sb_strmap_free(struct sb_strmap *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].key);
		free(m->v[i].value);
	}
	free(m->v);
	*m = (struct sb_strmap){ 0 };
}
