/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_RANDTREE_H
#define SB_TESTS_RANDTREE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sync/tree/manifest.h>

#include "tests/lib/unit.h"

/* Random manifests from a seed, and changes to them; for property tests. */
static inline uint64_t
rnd(uint64_t *s)
{
	uint64_t z = (*s += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline uint64_t
rnd_below(uint64_t *s, uint64_t n)
{
	return rnd(s) % n;
}

/* Few names, so that changes meet; some that sort oddly around '/'. */
static inline const char *
rnd_name(uint64_t *s)
{
	static char longest[256];
	static const char *const names[] = { "a", "b", "c", "ab", "a b", "a!", "a.", "a0", "\001",
		"\xff\xfe", "n\nl", "-x", "...", "\xc3\xa4", "z", NULL };
	const char *name = names[rnd_below(s, sizeof names / sizeof *names)];

	memset(longest, 'q', 255);
	return name ? name : longest;
}

/* A random entry; `target` is filled for symlinks. */
static inline struct sb_entry
rnd_entry(uint64_t *s, char target[64])
{
	struct sb_entry e = { .mode = (uint16_t)(rnd(s) & 07777),
		.mtime = (int64_t)rnd(s),
		.ino = rnd(s),
		.ctime = (int64_t)rnd(s) };

	e.type = rnd_below(s, 8) < 7 ? (uint8_t)(1 + rnd_below(s, 2)) : SB_ENTRY_LINK;
	if (rnd_below(s, 4))
		e.mtime = (int64_t)(1700000000000000000 + rnd_below(s, 3));
	if (e.type == SB_ENTRY_FILE) {
		e.size = rnd(s) >> (1 + rnd_below(s, 63));
		e.digest = sb_digest_of(&e.size, sizeof e.size);
		e.flags = rnd_below(s, 5) ? 0 : SB_ENTRY_RACY;
	} else if (e.type == SB_ENTRY_LINK) {
		(void)snprintf(target, 64, "../t%u", (unsigned)rnd_below(s, 1000));
	}
	return e;
}

/* The paths of a manifest, for picking one. */
struct paths {
	char **v;
	size_t n;
};

static inline int
paths_add(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct paths *p = arg;

	(void)e;
	p->v = realloc(p->v, (p->n + 1) * sizeof *p->v);
	assert_non_null(p->v);
	p->v[p->n] = strndup(path, len);
	assert_non_null(p->v[p->n]);
	p->n++;
	return 0;
}

static inline void
paths_free(struct paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i]);
	free(p->v);
	*p = (struct paths){ 0 };
}

static inline struct sb_entry *
put_random(struct sb_manifest *m, uint64_t *s, const char *path)
{
	struct sb_error err = { 0 };
	char target[64];
	struct sb_entry e = rnd_entry(s, target), *at;

	at = sb_manifest_put(m, path, &e, e.type == SB_ENTRY_LINK ? target : NULL, &err);
	if (!at)
		fail_msg("put %s: %s", path, err.msg);
	return at;
}

/*
 * Hard-links the file at one path to the file at the other (as the file system would: all of it is
 * the same).
 */
static inline void
link_random(struct sb_manifest *m, const char *a, const char *b)
{
	struct sb_error err = { 0 };
	struct sb_entry *x = sb_manifest_find(m, a), *y = sb_manifest_find(m, b);

	if (x == y || x->type != SB_ENTRY_FILE || y->type != SB_ENTRY_FILE || y->link)
		return;
	if (!x->link)
		assert_ok(sb_manifest_set_link(m, x, a, &err), &err);
	y->size = x->size;
	y->digest = x->digest;
	y->mode = x->mode;
	y->mtime = x->mtime;
	y->link = x->link;
}

/* One change at random: put, remove, new metadata, link. */
static inline void
mutate(struct sb_manifest *m, uint64_t *s)
{
	struct paths p = { 0 };
	char path[4096];
	struct sb_entry *e;

	assert_int_equal(sb_manifest_walk(m, paths_add, &p), 0);
	if (!p.n || rnd_below(s, 5) < 3) {
		const char *by = p.n ? p.v[rnd_below(s, p.n)] : "";
		size_t len = strlen(by);

		/* In the directory picked, or beside what else was picked. */
		if (sb_manifest_find(m, by)->type != SB_ENTRY_DIR)
			len = strrchr(by, '/') ? (size_t)(strrchr(by, '/') - by) : 0;
		if (len < sizeof path - 300) {
			(void)snprintf(path, sizeof path, "%.*s%s%s", (int)len, by, len ? "/" : "",
				rnd_name(s));
			(void)put_random(m, s, path);
		}
		paths_free(&p);
		return;
	}
	e = sb_manifest_find(m, p.v[rnd_below(s, p.n)]);
	switch (rnd_below(s, 16)) {
	case 0: (void)sb_manifest_remove(m, p.v[rnd_below(s, p.n)]); break;
	case 1:
	case 2:
		if (e->type != SB_ENTRY_LINK)
			e->mode ^= 0111;
		break;
	case 3:
	case 4: e->mtime++; break;
	case 5: (void)put_random(m, s, p.v[rnd_below(s, p.n)]); break;
	default:
		for (int i = 0; i < 4; i++)
			link_random(m, p.v[rnd_below(s, p.n)], p.v[rnd_below(s, p.n)]);
		break;
	}
	paths_free(&p);
}

/*
 * Changes to a member of a group let it leave the group in finish; that is part of what is tested.
 */
static inline struct sb_manifest *
random_tree(uint64_t *s, unsigned changes)
{
	struct sb_error err = { 0 };
	struct sb_manifest *m = sb_manifest_new(&err);

	assert_non_null(m);
	for (unsigned i = 0; i < changes; i++)
		mutate(m, s);
	assert_ok(sb_manifest_finish(m, &err), &err);
	return m;
}

/* Both the same, field by field; `stat` compares local knowledge too. */
static inline void
assert_same_dir(const struct sb_manifest *x, const struct sb_dir *a, const struct sb_manifest *y,
	const struct sb_dir *b, bool stat)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->total, b->total);
	if (stat)
		assert_int_equal(a->dev, b->dev);
	for (uint32_t i = 0; i < a->n; i++) {
		const struct sb_entry *e = &a->entries[i], *f = &b->entries[i];

		assert_string_equal(e->name, f->name);
		assert_int_equal(e->type, f->type);
		assert_int_equal(e->mtime, f->mtime);
		assert_memory_equal(e->digest.b, f->digest.b, 16);
		assert_int_equal(e->link != 0, f->link != 0);
		if (e->link)
			assert_string_equal(x->leaders[e->link - 1], y->leaders[f->link - 1]);
		if (e->type != SB_ENTRY_LINK)
			assert_int_equal(e->mode, f->mode);
		else
			assert_string_equal(sb_entry_target(e), sb_entry_target(f));
		if (stat) {
			assert_int_equal(e->ino, f->ino);
			assert_int_equal(e->ctime, f->ctime);
			assert_int_equal(e->flags & SB_ENTRY_RACY, f->flags & SB_ENTRY_RACY);
		}
		if (e->type == SB_ENTRY_DIR)
			assert_same_dir(x, e->dir, y, f->dir, stat);
		else
			assert_int_equal(e->size, f->size);
	}
}

static inline void
assert_same_tree(const struct sb_manifest *a, const struct sb_manifest *b, bool stat)
{
	assert_same_dir(a, a->root.dir, b, b->root.dir, stat);
	assert_int_equal(a->n_leaders, b->n_leaders);
	assert_int_equal(a->count, b->count);
	assert_memory_equal(a->id.b, b->id.b, 16);
}

#endif
