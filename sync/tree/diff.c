/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/tree/diff.h>

#include <stdlib.h>
#include <string.h>

#include <base/work.h>
#include <sync/tree/manifest-priv.h>

void
sb_diff_free(struct sb_diff *d)
{
	free(d->v);
	sb_arena_free(d->arena);
	*d = (struct sb_diff){ 0 };
}

static int
add_change(struct sb_diff *d, const char *path, size_t len, bool del, const struct sb_entry *e,
	const char *target, const char *leader)
{
	size_t tlen = target ? strlen(target) + 1 : 0;
	struct sb_change *c;
	char *copy;

	if (!d->arena)
		d->arena = sb_arena_new();
	if (!d->arena)
		return -1;
	if (d->n == d->cap) {
		size_t cap = d->cap ? d->cap * 2 : 16;

		c = reallocarray(d->v, cap, sizeof *c);
		if (!c)
			return -1;
		d->v = c;
		d->cap = cap;
	}
	copy = sb_arena_bytes(d->arena, len + 1 + tlen);
	if (!copy)
		return -1;
	memcpy(copy, path, len);
	copy[len] = 0;
	if (target)
		memcpy(copy + len + 1, target, tlen);
	if (leader) {
		leader = strcmp(leader, copy) == 0 ?
			copy :
			sb_arena_strdup(d->arena, leader, strlen(leader));
		if (!leader)
			return -1;
	}
	c = &d->v[d->n];
	*c = (struct sb_change){ .path = copy, .del = del, .leader = leader };
	if (!del) {
		const char *slash = memrchr(copy, '/', len);

		c->entry = *e;
		c->entry.name = slash ? slash + 1 : copy;
		c->entry.link = 0;
		c->target = target ? copy + len + 1 : NULL;
		if (e->type == SB_ENTRY_DIR)
			c->entry.dir = NULL;
	}
	d->n++;
	return 0;
}

int
sb_diff_add(struct sb_diff *d, const char *path, bool del, const struct sb_entry *e,
	const char *target, const char *leader, struct sb_error *err)
{
	if (add_change(d, path, strlen(path), del, e, target, leader) < 0)
		return sb_fail(err, SB_E_NOMEM, "list of changes: out of memory");
	return 0;
}

int
sb_diff_add_copy(struct sb_diff *d, const struct sb_change *c, struct sb_error *err)
{
	int r = sb_diff_add(d, c->path, c->del, c->del ? NULL : &c->entry, c->target, c->leader,
		err);

	if (r == 0)
		d->v[d->n - 1].fresh = c->fresh;
	return r;
}

int
sb_diff_copy(struct sb_diff *to, const struct sb_diff *from, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->n; i++)
		r = sb_diff_add_copy(to, &from->v[i], err);
	return r;
}

int
sb_diff_set_leader(struct sb_diff *d, struct sb_change *c, const char *leader, struct sb_error *err)
{
	c->leader = strcmp(leader, c->path) == 0 ?
		c->path :
		sb_arena_strdup(d->arena, leader, strlen(leader));
	return c->leader ? 0 : sb_fail(err, SB_E_NOMEM, "list of changes: out of memory");
}

int
sb_diff_path_order(const char *a, const char *b)
{
	const unsigned char *p = (const unsigned char *)a, *q = (const unsigned char *)b;
	int c, d;

	while (*p && *p == *q) {
		p++;
		q++;
	}
	c = *p == '/' ? 1 : *p ? *p + 1 : 0;
	d = *q == '/' ? 1 : *q ? *q + 1 : 0;
	return c - d;
}

const struct sb_change *
sb_diff_find_put(const struct sb_diff *d, const char *path)
{
	size_t lo = 0, hi = d->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = sb_diff_path_order(d->v[mid].path, path);

		/* A DEL comes before the PUT at its path. */
		if (c < 0 || (c == 0 && d->v[mid].del))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < d->n && !d->v[lo].del && strcmp(d->v[lo].path, path) == 0 ? &d->v[lo] : NULL;
}

/* Two directories of one path side by side; one of them may be missing. */
struct pair {
	const struct sb_dir *from;
	const struct sb_dir *to;
	uint32_t i;
	uint32_t k;
	size_t path_len; /* with the slash behind it unless empty */
};

struct maker {
	const struct sb_manifest *from;
	const struct sb_manifest *to;
	struct sb_diff *out;
	bool skip_equal; /* the hard links are the same, so equal digests say everything */
	struct pair *v;
	size_t n;
	size_t cap;
	struct sb_buf path;
};

static int
push_pair(struct maker *mk, const struct sb_dir *from, const struct sb_dir *to)
{
	if (mk->n == mk->cap) {
		size_t cap = mk->cap ? mk->cap * 2 : 32;
		struct pair *grown = reallocarray(mk->v, cap, sizeof *grown);

		if (!grown)
			return -1;
		mk->v = grown;
		mk->cap = cap;
	}
	if (mk->n)
		sb_buf_add_char(&mk->path, '/');
	if (mk->path.failed)
		return -1;
	mk->v[mk->n++] = (struct pair){ .from = from, .to = to, .path_len = mk->path.len };
	return 0;
}

static const char *
leader_of(const struct sb_manifest *m, const struct sb_entry *e)
{
	return e->link ? m->leaders[e->link - 1] : NULL;
}

static bool
same_leader(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static int
emit(struct maker *mk, const struct sb_entry *put)
{
	return add_change(mk->out, (const char *)mk->path.data, mk->path.len, !put, put,
		put && put->type == SB_ENTRY_LINK ? sb_entry_target(put) : NULL,
		put ? leader_of(mk->to, put) : NULL);
}

/* What happened to one name: `a` before, `b` now; not both NULL. */
static int
compare_entry(struct maker *mk, const struct sb_entry *a, const struct sb_entry *b)
{
	bool a_dir = a && a->type == SB_ENTRY_DIR, b_dir = b && b->type == SB_ENTRY_DIR;

	if (a && (!b || a_dir != b_dir)) {
		if (emit(mk, NULL) < 0)
			return -1;
		a = NULL;
	}
	if (!b)
		return 0;
	if (!a || !sb_entry_same(a, b) ||
		!same_leader(leader_of(mk->from, a), leader_of(mk->to, b))) {
		if (emit(mk, b) < 0)
			return -1;
	}
	if (!b_dir || (a && mk->skip_equal && sb_digest_eq(&a->digest, &b->digest)))
		return 0;
	return push_pair(mk, a ? a->dir : NULL, b->dir);
}

static int
step_pair(struct maker *mk)
{
	struct pair *p = &mk->v[mk->n - 1];
	const struct sb_entry *a = p->from && p->i < p->from->n ? &p->from->entries[p->i] : NULL;
	const struct sb_entry *b = p->to && p->k < p->to->n ? &p->to->entries[p->k] : NULL;
	int c;

	mk->path.len = p->path_len;
	if (!a && !b) {
		mk->n--;
		return 0;
	}
	c = !a ? 1 : !b ? -1 : strcmp(a->name, b->name);
	if (c <= 0)
		p->i++;
	else
		a = NULL;
	if (c >= 0)
		p->k++;
	else
		b = NULL;
	sb_buf_add_str(&mk->path, a ? a->name : b->name);
	if (mk->path.failed)
		return -1;
	return compare_entry(mk, a, b);
}

int
sb_diff_make(const struct sb_manifest *from, const struct sb_manifest *to, struct sb_diff *out,
	struct sb_error *err)
{
	struct maker mk = { .from = from, .to = to, .out = out };
	int r = 0;

	mk.skip_equal = sb_digest_eq(&sb_manifest_priv(from)->links, &sb_manifest_priv(to)->links);
	sb_buf_init(&mk.path, SIZE_MAX / 2);
	if (!mk.skip_equal || !sb_digest_eq(&from->root.digest, &to->root.digest))
		r = push_pair(&mk, from->root.dir, to->root.dir);
	while (r == 0 && mk.n) {
		r = sb_work_alive(err);
		if (r == 0)
			r = step_pair(&mk);
	}
	free(mk.v);
	sb_buf_free(&mk.path);
	if (r < 0) {
		sb_diff_free(out);
		if (r == SB_E_CANCELED)
			return r;
		return sb_fail(err, SB_E_NOMEM, "list of changes: out of memory");
	}
	return 0;
}
