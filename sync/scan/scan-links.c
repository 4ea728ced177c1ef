/* SPDX-License-Identifier: MIT */
/* Hard links of a scan: groups the names of one inode and makes them agree. */
#include "config.h"

#include <sync/scan/scan-priv.h>

#include <stdlib.h>
#include <string.h>

static int
compare_links(const void *a, const void *b)
{
	const struct sb_scan_link *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return 0;
}

static bool
same_inode(const struct sb_scan_link *a, const struct sb_scan_link *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

int
sb_scan_group_links(struct sb_scan_ctx *c)
{
	struct sb_manifest *m = c->m;
	uint32_t groups = 0;
	size_t i, end;

	if (!c->n_links)
		return 0;
	qsort(c->links, c->n_links, sizeof *c->links, compare_links);
	for (i = 0; i < c->n_links; i = end) {
		for (end = i + 1; end < c->n_links && same_inode(&c->links[i], &c->links[end]);)
			end++;
		/* Its other names are outside the tree or excluded. */
		if (end - i < 2)
			continue;
		groups++;
		for (size_t k = i; k < end; k++)
			c->links[k].entry->link = groups;
	}
	/* The paths of the leaders are found by sb_manifest_finish. */
	m->leaders = calloc((size_t)groups + 1, sizeof *m->leaders);
	if (!m->leaders) {
		sb_scan_fail_memory(c);
		return SB_E_NOMEM;
	}
	m->cap_leaders = groups + 1;
	m->n_leaders = groups;
	return 0;
}

/* What the members of a group have in common. */
struct common {
	const struct sb_entry *best; /* the latest state, hashed if one of them is */
	bool differ;
};

struct settle {
	struct sb_scan_ctx *c;
	struct common *v;
	bool last; /* those that differ are given up */
	size_t wanted;
};

static bool
same_state(const struct sb_entry *a, const struct sb_entry *b)
{
	return a->size == b->size && a->mtime == b->mtime && a->ctime == b->ctime &&
		a->mode == b->mode;
}

static bool
is_member(const struct sb_entry *e)
{
	return e->link && !(e->spare & SPARE_GONE);
}

static int
find_best(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct settle *s = arg;
	struct common *g;

	(void)path;
	(void)len;
	if (!is_member(e))
		return 0;
	g = &s->v[e->link - 1];
	if (!g->best || e->ctime > g->best->ctime ||
		(same_state(e, g->best) && (g->best->flags & SB_ENTRY_UNHASHED)))
		g->best = e;
	return 0;
}

static int
compare_member(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct settle *s = arg;
	struct common *g;

	(void)path;
	(void)len;
	if (!is_member(e))
		return 0;
	g = &s->v[e->link - 1];
	if (!same_state(e, g->best)) {
		g->differ = true;
	} else if (e->flags & SB_ENTRY_UNHASHED) {
		e->digest = g->best->digest;
		e->flags = g->best->flags;
	} else if (!sb_digest_eq(&e->digest, &g->best->digest)) {
		g->differ = true;
	}
	return 0;
}

static int
treat_member(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct settle *s = arg;

	(void)len;
	if (!is_member(e) || !s->v[e->link - 1].differ)
		return 0;
	if (s->last) {
		sb_scan_skip(s->c, "", path, SB_SKIP_UNSTABLE, 0);
		sb_scan_drop(s->c, e);
	} else {
		e->spare |= SPARE_WANTED;
		s->wanted++;
	}
	return 0;
}

/*
 * The names of one inode were looked at one after the other; a file that changed in between has
 * members that tell different things. They are read again once, then given up as unstable.
 */
int
sb_scan_settle_links(struct sb_scan_ctx *c)
{
	struct sb_manifest *m = c->m;
	struct settle s = { .c = c };
	int r = 0;

	if (!m->n_leaders)
		return 0;
	for (int round = 0; r == 0 && round < 2; round++) {
		s.last = round == 1;
		s.wanted = 0;
		s.v = calloc(m->n_leaders, sizeof *s.v);
		r = s.v ? sb_manifest_walk(m, find_best, &s) : SB_E_NOMEM;
		if (r == 0)
			r = sb_manifest_walk(m, compare_member, &s);
		if (r == 0)
			r = sb_manifest_walk(m, treat_member, &s);
		free(s.v);
		if (r == 0 && !s.wanted)
			break;
		if (r == 0)
			r = sb_scan_hash_wanted(c);
	}
	if (r == SB_E_NOMEM && !c->code)
		sb_scan_fail_memory(c);
	return c->code;
}
