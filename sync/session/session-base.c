/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-base.h>

#include <stdlib.h>
#include <string.h>

#include <base/strlist.h>

int
sb_session_base_revert(struct sb_manifest *m, const struct sb_manifest *base, const char *path,
	struct sb_error *err)
{
	const struct sb_entry *old = sb_manifest_find(base, path);
	sb_autofree char *parent = NULL;
	char *slash;

	(void)sb_manifest_remove(m, path);
	if (!old)
		return 0;
	parent = strdup(path);
	slash = parent ? strrchr(parent, '/') : NULL;
	if (slash) {
		*slash = 0;
		/*
		 * Its directory may be gone on the side the base is taken from: then there is
		 * nothing to hang it on.
		 */
		if (!sb_manifest_find(m, parent))
			return 0;
	}
	return sb_manifest_graft(m, path, old, err);
}

struct gone {
	const struct sb_manifest *local, *far;
	struct sb_strlist *paths;
};

static int
find_gone(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct gone *g = arg;

	(void)len;
	(void)e;
	if (!sb_manifest_find(g->local, path) && !sb_manifest_find(g->far, path))
		sb_strlist_add(g->paths, path);
	return 0;
}

int
sb_session_base_drop_gone(struct sb_manifest *m, const struct sb_manifest *local,
	const struct sb_manifest *far, const char *path, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist paths = { 0 };
	struct gone g = { local, far, &paths };
	struct sb_entry *e = sb_manifest_find(m, path);
	int r;

	if (!e || e->type != SB_ENTRY_DIR)
		return 0;
	r = sb_manifest_walk_dir(e->dir, path, find_gone, &g);
	if (r == 0)
		r = sb_strlist_check(&paths, err);
	for (size_t i = 0; r == 0 && i < paths.n; i++)
		(void)sb_manifest_remove(m, paths.v[i]);
	return r;
}

struct retained {
	const struct sb_manifest *base;
	struct sb_manifest *next;
	struct sb_rules *rules;
	struct sb_error *err;
};

static int
retain(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct retained *t = arg;

	(void)len;
	if (!sb_rules_excluded(t->rules, path, e->type == SB_ENTRY_DIR) ||
		sb_manifest_find(t->next, path))
		return 0;
	return sb_session_base_revert(t->next, t->base, path, t->err);
}

int
sb_session_base_retain(struct sb_manifest *m, const struct sb_manifest *base,
	struct sb_rules *rules, struct sb_error *err)
{
	struct retained t = { .base = base, .next = m, .rules = rules, .err = err };

	return sb_manifest_walk(base, retain, &t);
}
