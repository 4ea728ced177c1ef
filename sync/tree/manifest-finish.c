/* SPDX-License-Identifier: MIT */
/* Computes what a manifest says about itself: Merkle digests, totals, link groups, its id. */
#include "config.h"

#include <sync/tree/manifest.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <base/work.h>
#include <sync/tree/manifest-priv.h>

/*
 * A directory's digest covers one record a child, little-endian:
 *   type u8 | mode u16 (0 for symlinks) | mtime u64 | size u64 (0 for directories) |
 *   digest 16 | name length u16 | name
 * The manifest's id is the digest of the root's digest and the digest of the hard links, which is
 * all zero when there are none and else covers (group u32 | path | NUL) of every linked entry in
 * pre-order. The root's own mode and mtime are in neither.
 */
#define RECORD_FIXED 37

static void
put_le(uint8_t *to, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (uint8_t)(v >> (8 * i));
}

static void
hash_dir(struct sb_entry *dir, XXH3_state_t *st)
{
	struct sb_dir *d = dir->dir;
	uint8_t buf[4096];
	size_t used = 0;

	(void)XXH3_128bits_reset(st);
	d->total = d->n;
	for (uint32_t i = 0; i < d->n; i++) {
		const struct sb_entry *e = &d->entries[i];
		size_t len = strlen(e->name);
		uint8_t *to;

		assert(len <= 255);
		if (used + RECORD_FIXED + len > sizeof buf) {
			(void)XXH3_128bits_update(st, buf, used);
			used = 0;
		}
		to = buf + used;
		to[0] = e->type;
		put_le(to + 1, e->type == SB_ENTRY_LINK ? 0 : e->mode, 2);
		put_le(to + 3, (uint64_t)e->mtime, 8);
		put_le(to + 11, e->type == SB_ENTRY_DIR ? 0 : e->size, 8);
		memcpy(to + 19, e->digest.b, sizeof e->digest.b);
		put_le(to + 35, len, 2);
		memcpy(to + RECORD_FIXED, e->name, len);
		used += RECORD_FIXED + len;
		if (e->type == SB_ENTRY_DIR)
			d->total += e->dir->total;
	}
	(void)XXH3_128bits_update(st, buf, used);
	dir->digest = sb_digest_final(st);
}

int
sb_manifest_finish_digests(struct sb_manifest *m, struct sb_error *err)
{
	sb_autofree struct sb_entry **v = NULL;
	XXH3_state_t *st;
	size_t n;
	int r = 0;

	v = sb_manifest_dirs(&m->root, &n, err);
	if (!v)
		return SB_E_NOMEM;
	st = XXH3_createState();
	if (!st)
		return sb_fail(err, SB_E_NOMEM, "digest of a manifest: out of memory");
	/* Backwards: children before their parents. */
	for (size_t i = n; i > 0 && r == 0; i--) {
		hash_dir(v[i - 1], st);
		r = sb_work_alive(err);
	}
	(void)XXH3_freeState(st);
	m->count = m->root.dir->total;
	return r;
}

void
sb_manifest_finish_id(struct sb_manifest *m)
{
	struct sb_digest parts[2] = { m->root.digest, sb_manifest_priv(m)->links };

	m->id = sb_digest_of(parts, sizeof parts);
}

void
sb_manifest_drop_index(struct sb_manifest *m)
{
	struct sb_manifest_priv *priv = sb_manifest_priv(m);

	free(priv->slots);
	priv->slots = NULL;
	priv->n_slots = 0;
}

uint32_t
sb_manifest_add_leader(struct sb_manifest *m, const char *path, size_t len)
{
	char *copy;

	if (m->n_leaders == m->cap_leaders) {
		uint32_t cap = m->cap_leaders ? m->cap_leaders * 2 : 16;
		char **grown =
			cap > m->cap_leaders ? reallocarray(m->leaders, cap, sizeof *grown) : NULL;

		if (!grown)
			return 0;
		m->leaders = grown;
		m->cap_leaders = cap;
	}
	copy = malloc(len + 1);
	if (!copy)
		return 0;
	memcpy(copy, path, len);
	copy[len] = 0;
	m->leaders[m->n_leaders++] = copy;
	return m->n_leaders;
}

/* The slot of `path`, or the free one where it would go. */
static size_t
find_slot(const struct sb_manifest *m, const char *path)
{
	const struct sb_manifest_priv *priv = sb_manifest_priv(m);
	size_t mask = priv->n_slots - 1;
	size_t at = (size_t)XXH3_64bits(path, strlen(path)) & mask;

	while (priv->slots[at] && strcmp(m->leaders[priv->slots[at] - 1], path) != 0)
		at = (at + 1) & mask;
	return at;
}

/* Keeps the index at most half full, for one more leader. */
static int
grow_index(struct sb_manifest *m)
{
	struct sb_manifest_priv *priv = sb_manifest_priv(m);
	size_t n = priv->n_slots ? priv->n_slots : 64;

	while (n / 2 < (size_t)m->n_leaders + 1)
		n *= 2;
	if (n == priv->n_slots)
		return 0;
	sb_manifest_drop_index(m);
	priv->slots = calloc(n, sizeof *priv->slots);
	if (!priv->slots)
		return -1;
	priv->n_slots = n;
	for (uint32_t i = 0; i < m->n_leaders; i++)
		priv->slots[find_slot(m, m->leaders[i])] = i + 1;
	return 0;
}

int
sb_manifest_set_link(struct sb_manifest *m, struct sb_entry *e, const char *leader,
	struct sb_error *err)
{
	struct sb_manifest_priv *priv = sb_manifest_priv(m);
	size_t at;

	if (e->type != SB_ENTRY_FILE)
		return sb_fail(err, SB_E_INVAL, "only files can be hard-linked");
	if (grow_index(m) < 0)
		return sb_fail(err, SB_E_NOMEM, "hard links: out of memory");
	at = find_slot(m, leader);
	if (!priv->slots[at])
		priv->slots[at] = sb_manifest_add_leader(m, leader, strlen(leader));
	if (!priv->slots[at])
		return sb_fail(err, SB_E_NOMEM, "hard links: out of memory");
	e->link = priv->slots[at];
	return 0;
}

/* One hard-link group while it is put in order. */
struct group {
	const struct sb_entry *first;
	char *path; /* of `first` */
	uint32_t members;
	uint32_t number; /* 1 + the new index, 0: no group any more */
};

struct regroup {
	struct group *v;
	uint32_t n;
	uint32_t *seen; /* the groups in the order of their first members */
	uint32_t n_seen;
	XXH3_state_t *st;
};

static void
regroup_free(struct regroup *g)
{
	for (uint32_t i = 0; g->v && i < g->n; i++)
		free(g->v[i].path);
	free(g->v);
	free(g->seen);
	(void)XXH3_freeState(g->st);
}

/* Two names of one inode cannot differ in any of these. */
static bool
fits_group(const struct sb_entry *a, const struct sb_entry *b)
{
	return a->size == b->size && a->mtime == b->mtime && a->mode == b->mode &&
		sb_digest_eq(&a->digest, &b->digest);
}

static int
count_member(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct regroup *r = arg;
	struct group *g;

	if (!e->link)
		return 0;
	if (e->type != SB_ENTRY_FILE || e->link > r->n) {
		e->link = 0;
		return 0;
	}
	g = &r->v[e->link - 1];
	if (!g->first) {
		g->path = malloc(len + 1);
		if (!g->path)
			return SB_E_NOMEM;
		memcpy(g->path, path, len + 1);
		g->first = e;
		r->seen[r->n_seen++] = e->link - 1;
	} else if (!fits_group(g->first, e)) {
		e->link = 0;
		return 0;
	}
	g->members++;
	return 0;
}

static int
renumber_member(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct regroup *r = arg;
	uint8_t number[4];

	if (!e->link)
		return 0;
	e->link = r->v[e->link - 1].number;
	if (!e->link)
		return 0;
	put_le(number, e->link, sizeof number);
	(void)XXH3_128bits_update(r->st, number, sizeof number);
	(void)XXH3_128bits_update(r->st, path, len + 1);
	return 0;
}

/* Replaces the leaders by the first members of the groups that have at least two. */
static void
take_leaders(struct sb_manifest *m, struct regroup *r)
{
	for (uint32_t i = 0; i < m->n_leaders; i++)
		free(m->leaders[i]);
	m->n_leaders = 0;
	for (uint32_t i = 0; i < r->n_seen; i++) {
		struct group *g = &r->v[r->seen[i]];

		if (g->members < 2)
			continue;
		m->leaders[m->n_leaders++] = sb_steal(&g->path);
		g->number = m->n_leaders;
	}
}

int
sb_manifest_finish_links(struct sb_manifest *m, struct sb_error *err)
{
	struct regroup r = { .n = m->n_leaders };
	int code = SB_E_NOMEM;

	sb_manifest_priv(m)->links = (struct sb_digest){ 0 };
	sb_manifest_drop_index(m);
	r.v = calloc((size_t)r.n + 1, sizeof *r.v);
	r.seen = calloc((size_t)r.n + 1, sizeof *r.seen);
	r.st = XXH3_createState();
	if (!r.v || !r.seen || !r.st)
		goto out;
	(void)XXH3_128bits_reset(r.st);
	code = sb_manifest_walk(m, count_member, &r);
	if (code < 0)
		goto out;
	take_leaders(m, &r);
	code = sb_manifest_walk(m, renumber_member, &r);
	if (code < 0)
		goto out;
	if (m->n_leaders)
		sb_manifest_priv(m)->links = sb_digest_final(r.st);
out:
	regroup_free(&r);
	if (code == SB_E_CANCELED)
		return sb_fail(err, code, "canceled");
	return code < 0 ? sb_fail(err, code, "hard links: out of memory") : 0;
}

int
sb_manifest_finish(struct sb_manifest *m, struct sb_error *err)
{
	int r = sb_manifest_finish_digests(m, err);

	if (r < 0)
		return r;
	if (m->n_leaders || sb_digest_known(&sb_manifest_priv(m)->links))
		r = sb_manifest_finish_links(m, err);
	if (r < 0)
		return r;
	sb_manifest_finish_id(m);
	return 0;
}
