/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/overlay-node.h>

#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096

struct sb_overlay_ref {
	uint64_t layer; /* 0: free */
	unsigned n;
};

static size_t
hash_u64(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	return (size_t)x;
}

int
sb_overlay_node_u64s_add(struct sb_overlay_u64s *v, uint64_t x, struct sb_error *err)
{
	if (v->n == v->cap) {
		size_t cap = v->cap ? v->cap * 2 : 16;
		uint64_t *p = reallocarray(v->v, cap, sizeof *p);

		if (!p)
			return sb_fail(err, SB_E_NOMEM, "layers");
		v->v = p;
		v->cap = cap;
	}
	v->v[v->n++] = x;
	return 0;
}

int
sb_overlay_node_init(struct sb_overlay_nodes *t, struct sb_error *err)
{
	*t = (struct sb_overlay_nodes){ .next_id = 1, .n_buckets = BUCKETS, .cap_refs = BUCKETS };
	t->bucket = calloc(BUCKETS, sizeof(*t->bucket));
	t->refs = calloc(BUCKETS, sizeof *t->refs);
	if (!t->bucket || !t->refs) {
		sb_overlay_node_free_all(t);
		return sb_fail(err, SB_E_NOMEM, "storage overlay");
	}
	return 0;
}

void
sb_overlay_node_free_all(struct sb_overlay_nodes *t)
{
	for (size_t i = 0; t->bucket && i < t->n_buckets; i++)
		while (t->bucket[i]) {
			struct sb_overlay_node *n = t->bucket[i];

			t->bucket[i] = n->next;
			free(n);
		}
	free(t->bucket);
	free(t->refs);
	free(t->dead.v);
	*t = (struct sb_overlay_nodes){ 0 };
}

static struct sb_overlay_ref *
ref_slot(struct sb_overlay_ref *v, size_t cap, uint64_t layer)
{
	size_t i = hash_u64(layer) & (cap - 1);

	while (v[i].layer && v[i].layer != layer)
		i = (i + 1) & (cap - 1);
	return &v[i];
}

/* Room for one more, so that the next keep cannot fail. Entries of 0 are left out. */
static int
refs_grow(struct sb_overlay_nodes *t, struct sb_error *err)
{
	size_t cap = t->cap_refs, n = 0;
	struct sb_overlay_ref *v;

	if (t->n_refs + 1 <= t->cap_refs / 2)
		return 0;
	for (size_t i = 0; i < t->cap_refs; i++)
		n += t->refs[i].layer && t->refs[i].n > 0;
	while (n + 1 > cap / 4)
		cap *= 2;
	v = calloc(cap, sizeof *v);
	if (!v)
		return sb_fail(err, SB_E_NOMEM, "layers");
	for (size_t i = 0; i < t->cap_refs; i++)
		if (t->refs[i].layer && t->refs[i].n > 0)
			*ref_slot(v, cap, t->refs[i].layer) = t->refs[i];
	free(t->refs);
	t->refs = v;
	t->cap_refs = cap;
	t->n_refs = n;
	return 0;
}

int
sb_overlay_node_keep(struct sb_overlay_nodes *t, uint64_t layer, struct sb_error *err)
{
	struct sb_overlay_ref *r;
	int e;

	if (!layer)
		return 0;
	e = refs_grow(t, err);
	if (e < 0)
		return e;
	r = ref_slot(t->refs, t->cap_refs, layer);
	if (!r->layer) {
		r->layer = layer;
		t->n_refs++;
	}
	r->n++;
	if (layer >= t->next_id)
		t->next_id = layer + 1;
	return 0;
}

void
sb_overlay_node_let_go(struct sb_overlay_nodes *t, uint64_t layer)
{
	struct sb_overlay_ref *r = layer ? ref_slot(t->refs, t->cap_refs, layer) : NULL;

	if (!r || !r->layer || r->n == 0 || --r->n > 0)
		return;
	/* Without memory it stays on the disk until the next start. */
	(void)sb_overlay_node_u64s_add(&t->dead, layer, NULL);
}

bool
sb_overlay_node_needs(const struct sb_overlay_nodes *t, uint64_t layer)
{
	const struct sb_overlay_ref *r = ref_slot(t->refs, t->cap_refs, layer);

	return r->layer && r->n > 0;
}

struct sb_overlay_node *
sb_overlay_node_find(const struct sb_overlay_nodes *t, uint64_t id)
{
	struct sb_overlay_node *n = t->bucket[hash_u64(id) % t->n_buckets];

	while (n && n->id != id)
		n = n->next;
	return n;
}

/* One reason less; a node without any is gone, and so on down. */
static void
node_unref(struct sb_overlay_nodes *t, struct sb_overlay_node *n)
{
	while (n && --n->refs == 0) {
		struct sb_overlay_node *parent = n->parent;
		struct sb_overlay_node **p = &t->bucket[hash_u64(n->id) % t->n_buckets];

		while (*p != n)
			p = &(*p)->next;
		*p = n->next;
		t->n--;
		sb_overlay_node_let_go(t, n->layer);
		sb_overlay_node_let_go(t, n->flat);
		free(n);
		n = parent;
	}
}

void
sb_overlay_node_pin(struct sb_overlay_node *n)
{
	if (n) {
		n->refs++;
		n->named++;
	}
}

void
sb_overlay_node_unpin(struct sb_overlay_nodes *t, struct sb_overlay_node *n)
{
	if (n) {
		n->named--;
		node_unref(t, n);
	}
}

static void
grow_nodes(struct sb_overlay_nodes *t)
{
	size_t n = t->n_buckets * 4;
	struct sb_overlay_node **v = t->n < t->n_buckets ? NULL : calloc(n, sizeof(*v));

	if (!v)
		return;
	for (size_t i = 0; i < t->n_buckets; i++)
		while (t->bucket[i]) {
			struct sb_overlay_node *x = t->bucket[i];
			size_t to = hash_u64(x->id) % n;

			t->bucket[i] = x->next;
			x->next = v[to];
			v[to] = x;
		}
	free(t->bucket);
	t->bucket = v;
	t->n_buckets = n;
}

/* The parent of a record: 0 is the base. */
int
sb_overlay_node_named(const struct sb_overlay_nodes *t, uint64_t id, struct sb_overlay_node **out,
	struct sb_error *err)
{
	*out = id ? sb_overlay_node_find(t, id) : NULL;
	return id && !*out ?
		sb_fail(err, SB_E_CORRUPT, "node %llu is not there", (unsigned long long)id) :
		0;
}

/* A new one without a reason to be there yet. */
int
sb_overlay_node_add(struct sb_overlay_nodes *t, const struct sb_overlay_rec *r,
	struct sb_overlay_node **out, struct sb_error *err)
{
	struct sb_overlay_node *n, *parent;
	int e;

	if (!r->node || !r->layer || sb_overlay_node_find(t, r->node))
		return sb_fail(err, SB_E_CORRUPT, "node %llu cannot be made",
			(unsigned long long)r->node);
	e = sb_overlay_node_named(t, r->parent, &parent, err);
	if (e == 0)
		e = sb_overlay_node_keep(t, r->layer, err);
	if (e < 0)
		return e;
	n = sb_overlay_node_keep(t, r->flat, err) == 0 ? calloc(1, sizeof *n) : NULL;
	if (!n) {
		sb_overlay_node_let_go(t, r->layer);
		return sb_fail(err, SB_E_NOMEM, "node");
	}
	*n = (struct sb_overlay_node){ .id = r->node,
		.parent = parent,
		.layer = r->layer,
		.flat = r->flat,
		.bytes = r->bytes,
		.durable = r->durable };
	if (parent)
		parent->refs++;
	if (r->node >= t->next_id)
		t->next_id = r->node + 1;
	grow_nodes(t);
	n->next = t->bucket[hash_u64(n->id) % t->n_buckets];
	t->bucket[hash_u64(n->id) % t->n_buckets] = n;
	t->n++;
	*out = n;
	return 0;
}

/* The node of a NODE record changes, or is new. */
int
sb_overlay_node_apply(struct sb_overlay_nodes *t, const struct sb_overlay_rec *r,
	struct sb_error *err)
{
	struct sb_overlay_node *n = sb_overlay_node_find(t, r->node), *parent, *old;
	uint64_t layer, flat;
	int e;

	if (!n)
		return sb_overlay_node_add(t, r, &n, err);
	e = sb_overlay_node_named(t, r->parent, &parent, err);
	for (const struct sb_overlay_node *p = parent; p && e == 0; p = p->parent)
		if (p == n)
			e = sb_fail(err, SB_E_CORRUPT, "node %llu stands on itself",
				(unsigned long long)n->id);
	if (e == 0 && !r->layer)
		e = sb_fail(err, SB_E_CORRUPT, "node %llu has no layer", (unsigned long long)n->id);
	if (e == 0)
		e = sb_overlay_node_keep(t, r->layer, err);
	if (e < 0)
		return e;
	e = sb_overlay_node_keep(t, r->flat, err);
	if (e < 0) {
		sb_overlay_node_let_go(t, r->layer);
		return e;
	}
	old = n->parent;
	layer = n->layer;
	flat = n->flat;
	n->layer = r->layer;
	n->flat = r->flat;
	n->bytes = r->bytes;
	n->durable = r->durable;
	n->parent = parent;
	if (parent)
		parent->refs++;
	if (old)
		node_unref(t, old);
	sb_overlay_node_let_go(t, layer);
	sb_overlay_node_let_go(t, flat);
	return 0;
}

int
sb_overlay_node_stack(const struct sb_overlay_node *n, uint64_t *out, size_t at, size_t max,
	struct sb_error *err)
{
	for (; n; n = n->parent) {
		if (at == max)
			return sb_fail(err, SB_E_LIMIT, "more than %zu layers", max);
		out[at++] = n->flat ? n->flat : n->layer;
		if (n->flat)
			break;
	}
	return (int)at;
}
