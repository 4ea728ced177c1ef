/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/tree/manifest.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <base/work.h>
#include <base/path.h>
#include <sb/log.h>
#include <sync/tree/manifest-priv.h>

struct sb_manifest *
sb_manifest_new(struct sb_error *err)
{
	struct sb_manifest *m = calloc(1, sizeof *m);
	struct sb_manifest_priv *priv = calloc(1, sizeof *priv);

	if (priv)
		priv->mem = sb_arena_new();
	if (!m || !priv || !priv->mem)
		goto fail;
	m->arena = priv;
	m->root.name = "";
	m->root.type = SB_ENTRY_DIR;
	m->root.mode = 0755;
	m->root.dir = sb_manifest_alloc(m, sizeof *m->root.dir);
	if (!m->root.dir)
		goto fail;
	*m->root.dir = (struct sb_dir){ 0 };
	return m;
fail:
	if (priv)
		sb_arena_free(priv->mem);
	free(priv);
	free(m);
	(void)sb_fail(err, SB_E_NOMEM, "manifest: out of memory");
	return NULL;
}

void
sb_manifest_free(struct sb_manifest *m)
{
	struct sb_manifest_priv *priv;

	if (!m)
		return;
	priv = sb_manifest_priv(m);
	for (uint32_t i = 0; i < m->n_leaders; i++)
		free(m->leaders[i]);
	free(m->leaders);
	sb_arena_free(priv->mem);
	free(priv->slots);
	free(priv);
	free(m);
}

void *
sb_manifest_alloc(struct sb_manifest *m, size_t size)
{
	return sb_arena_alloc(sb_manifest_priv(m)->mem, size);
}

char *
sb_manifest_bytes(struct sb_manifest *m, size_t size)
{
	return sb_arena_bytes(sb_manifest_priv(m)->mem, size);
}

char *
sb_manifest_strdup(struct sb_manifest *m, const char *s, size_t len)
{
	return sb_arena_strdup(sb_manifest_priv(m)->mem, s, len);
}

uint32_t
sb_manifest_dir_lower_bound(const struct sb_dir *d, const char *name, size_t len, bool *out_hit)
{
	uint32_t lo = 0, hi = d->n;

	*out_hit = false;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const char *have = d->entries[mid].name;
		int c = strncmp(have, name, len);

		if (c == 0 && have[len] == 0) {
			*out_hit = true;
			return mid;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct sb_entry *
sb_manifest_dir_find(const struct sb_dir *d, const char *name, size_t len)
{
	bool hit;
	uint32_t at = sb_manifest_dir_lower_bound(d, name, len, &hit);

	return hit ? &d->entries[at] : NULL;
}

/* Finds the entry at the first `len` bytes of `path`. */
static struct sb_entry *
find_prefix(const struct sb_manifest *m, const char *path, size_t len)
{
	const struct sb_entry *e = &m->root;
	const char *end = path + len;

	while (path < end) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		const char *stop = slash ? slash : end;

		if (e->type != SB_ENTRY_DIR)
			return NULL;
		e = sb_manifest_dir_find(e->dir, path, (size_t)(stop - path));
		if (!e)
			return NULL;
		path = slash ? slash + 1 : end;
	}
	return (struct sb_entry *)e;
}

struct sb_entry *
sb_manifest_find(const struct sb_manifest *m, const char *path)
{
	return find_prefix(m, path, strlen(path));
}

/*
 * Points at the last component of `path`; `out_len` is the length of what is before it, without the
 * slash.
 */
static const char *
split_leaf(const char *path, size_t *out_len)
{
	const char *slash = strrchr(path, '/');

	*out_len = slash ? (size_t)(slash - path) : 0;
	return slash ? slash + 1 : path;
}

/* Opens a gap for one entry at `at`. */
static int
make_gap(struct sb_manifest *m, struct sb_dir *d, uint32_t at)
{
	if (d->n == d->cap) {
		uint32_t cap = d->cap ? d->cap * 2 : 4;
		struct sb_entry *grown;

		if (cap <= d->cap)
			return -1;
		grown = sb_manifest_alloc(m, cap * sizeof *grown);
		if (!grown)
			return -1;
		if (d->n)
			memcpy(grown, d->entries, d->n * sizeof *grown);
		d->entries = grown;
		d->cap = cap;
	}
	memmove(d->entries + at + 1, d->entries + at, (d->n - at) * sizeof *d->entries);
	d->n++;
	return 0;
}

/* The name of a new entry, with a symlink's target behind it. */
static char *
make_name(struct sb_manifest *m, const char *leaf, const char *target)
{
	size_t len = strlen(leaf), tlen = target ? strlen(target) + 1 : 0;
	char *name = sb_arena_bytes(sb_manifest_priv(m)->mem, len + 1 + tlen);

	if (!name)
		return NULL;
	memcpy(name, leaf, len + 1);
	if (target)
		memcpy(name + len + 1, target, tlen);
	return name;
}

int
sb_manifest_make_entry(struct sb_manifest *m, const char *leaf, const struct sb_entry *e,
	const char *target, const struct sb_entry *old, struct sb_entry *out)
{
	struct sb_entry made = *e;

	made.name = old && !target ? old->name : make_name(m, leaf, target);
	if (!made.name)
		return -1;
	made.link = 0;
	if (e->type == SB_ENTRY_DIR && old && old->type == SB_ENTRY_DIR) {
		made.dir = old->dir;
	} else if (e->type == SB_ENTRY_DIR) {
		made.dir = sb_manifest_alloc(m, sizeof *made.dir);
		if (!made.dir)
			return -1;
		*made.dir = (struct sb_dir){ 0 };
	} else if (e->type == SB_ENTRY_LINK) {
		made.size = strlen(target);
		made.digest = sb_digest_of(target, made.size);
	}
	*out = made;
	return 0;
}

struct sb_entry *
sb_manifest_put(struct sb_manifest *m, const char *path, const struct sb_entry *e,
	const char *target, struct sb_error *err)
{
	size_t dir_len, len = strlen(path);
	const char *leaf = split_leaf(path, &dir_len);
	struct sb_entry *parent, *old, made;
	char shown[256];
	uint32_t at;
	bool hit;

	assert((e->type == SB_ENTRY_LINK) == (target != NULL));
	if (sb_path_check(path, len, err) < 0)
		return NULL;
	if (!len) {
		if (e->type != SB_ENTRY_DIR) {
			(void)sb_fail(err, SB_E_INVAL,
				"the root of a manifest must be a directory");
			return NULL;
		}
		(void)sb_manifest_make_entry(m, "", e, NULL, &m->root, &m->root);
		return &m->root;
	}
	parent = find_prefix(m, path, dir_len);
	if (!parent || parent->type != SB_ENTRY_DIR) {
		(void)sb_fail(err, SB_E_NOTFOUND, "%s: its directory is not in the manifest",
			sb_escape(path, len, shown, sizeof shown));
		return NULL;
	}
	at = sb_manifest_dir_lower_bound(parent->dir, leaf, strlen(leaf), &hit);
	old = hit ? &parent->dir->entries[at] : NULL;
	if (sb_manifest_make_entry(m, leaf, e, target, old, &made) < 0 ||
		(!old && make_gap(m, parent->dir, at) < 0)) {
		(void)sb_fail(err, SB_E_NOMEM, "manifest: out of memory");
		return NULL;
	}
	parent->dir->entries[at] = made;
	return &parent->dir->entries[at];
}

bool
sb_manifest_remove(struct sb_manifest *m, const char *path)
{
	size_t dir_len;
	const char *leaf = split_leaf(path, &dir_len);
	struct sb_entry *parent = find_prefix(m, path, dir_len);
	struct sb_dir *d;
	uint32_t at;
	bool hit;

	if (!parent || parent->type != SB_ENTRY_DIR || !*leaf)
		return false;
	d = parent->dir;
	at = sb_manifest_dir_lower_bound(d, leaf, strlen(leaf), &hit);
	if (!hit)
		return false;
	memmove(d->entries + at, d->entries + at + 1, (d->n - at - 1) * sizeof *d->entries);
	d->n--;
	return true;
}

/* Bytes of the name with a symlink's target. */
static size_t
name_size(const struct sb_entry *e)
{
	return strlen(e->name) + 1 + (e->type == SB_ENTRY_LINK ? e->size + 1 : 0);
}

/* Copies the entries of `from` into the empty `to`; directories get new, empty ones. */
static int
copy_dir(struct sb_manifest *m, const struct sb_dir *from, struct sb_dir *to)
{
	size_t bytes = 0;
	char *names;

	for (uint32_t i = 0; i < from->n; i++)
		bytes += name_size(&from->entries[i]);
	names = sb_arena_bytes(sb_manifest_priv(m)->mem, bytes);
	*to = *from;
	to->n = to->cap = 0;
	to->entries = sb_manifest_alloc(m, from->n * sizeof *to->entries);
	if (!names || !to->entries)
		return -1;
	for (uint32_t i = 0; i < from->n; i++) {
		struct sb_entry *e = &to->entries[i];
		size_t n = name_size(&from->entries[i]);

		*e = from->entries[i];
		memcpy(names, e->name, n);
		e->name = names;
		names += n;
		if (e->type != SB_ENTRY_DIR)
			continue;
		e->dir = sb_manifest_alloc(m, sizeof *e->dir);
		if (!e->dir)
			return -1;
		*e->dir = (struct sb_dir){ 0 };
	}
	to->n = to->cap = from->n;
	return 0;
}

/* `v` are the directories of the source in order; their copies appear in the same order. */
static int
copy_tree(struct sb_manifest *to, struct sb_entry *const *v, size_t n)
{
	sb_autofree struct sb_dir **made = malloc(n * sizeof *made);
	size_t known = 1;

	if (!made)
		return -1;
	made[0] = to->root.dir;
	for (size_t i = 0; i < n; i++) {
		struct sb_dir *d = made[i];

		if (sb_work_alive(NULL) < 0)
			return SB_E_CANCELED;
		if (copy_dir(to, v[i]->dir, d) < 0)
			return -1;
		for (uint32_t k = 0; k < d->n; k++) {
			if (d->entries[k].type == SB_ENTRY_DIR)
				made[known++] = d->entries[k].dir;
		}
	}
	return 0;
}

struct sb_manifest *
sb_manifest_copy(const struct sb_manifest *m, struct sb_error *err)
{
	sb_autofree struct sb_entry **v = NULL;
	sb_auto(sb_manifest) struct sb_manifest *to = sb_manifest_new(err);
	struct sb_dir *root;
	size_t n;
	int r;

	if (!to)
		return NULL;
	v = sb_manifest_dirs(&m->root, &n, err);
	if (!v)
		return NULL;
	root = to->root.dir;
	to->root = m->root;
	to->root.name = "";
	to->root.dir = root;
	to->count = m->count;
	to->id = m->id;
	sb_manifest_priv(to)->links = sb_manifest_priv(m)->links;
	r = copy_tree(to, v, n);
	if (r < 0)
		goto fail;
	for (uint32_t i = 0; i < m->n_leaders; i++) {
		if (!sb_manifest_add_leader(to, m->leaders[i], strlen(m->leaders[i])))
			goto fail;
	}
	return sb_steal(&to);
fail:
	if (r == SB_E_CANCELED)
		(void)sb_fail(err, r, "canceled");
	else
		(void)sb_fail(err, SB_E_NOMEM, "copy of a manifest: out of memory");
	return NULL;
}
