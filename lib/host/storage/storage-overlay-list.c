/* SPDX-License-Identifier: MIT */
/* Listings and sizes of the overlay storage. */
#include "config.h"

#include <host/storage/storage-overlay-priv.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <host/storage/overlay-layer.h>

#define NS 1000000000

/* A line of a listing, as it was when the state was looked at. */
struct line {
	struct sb_storage_entry e; /* texts are its own */
	char *texts[6];
	uint64_t node, layer; /* of a snapshot */
	uint64_t upper;       /* of a session */
};

struct lines {
	struct sb_storage_overlay *o;
	struct line *v;
	size_t n, cap;
};

static void
lines_free(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < sizeof l->v[i].texts / sizeof l->v[i].texts[0]; k++)
			free(l->v[i].texts[k]);
	free(l->v);
}

/* A new line; "" becomes NULL. */
static struct line *
add_line(struct lines *l, const char *const texts[6], struct sb_error *err)
{
	struct line *x;

	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		struct line *v = reallocarray(l->v, cap, sizeof *v);

		if (!v)
			goto no_memory;
		l->v = v;
		l->cap = cap;
	}
	x = &l->v[l->n++];
	*x = (struct line){ 0 };
	for (size_t i = 0; i < 6; i++)
		if (texts[i] && *texts[i] && !(x->texts[i] = strdup(texts[i])))
			goto no_memory;
	x->e.id = x->texts[0];
	x->e.snap = x->texts[1];
	x->e.parent = x->texts[2];
	x->e.origin_id = x->texts[3];
	x->e.origin_snap = x->texts[4];
	x->e.mountpoint = x->texts[5];
	return x;
no_memory:
	(void)sb_fail(err, SB_E_NOMEM, "list of sessions");
	return NULL;
}

/* The session, then its snapshots. With `mu` held. */
static int
add_session(struct sb_overlay_session *se, void *arg, struct sb_error *err)
{
	struct lines *l = arg;
	const struct sb_storage_overlay_mine *mine = se->mine;
	sb_autofree char *path = sb_storage_overlay_path(l->o, se->id);
	const char *const own[6] = { se->id, NULL, se->head, se->origin_id, se->origin_snap, path };
	struct line *x = add_line(l, own, err);

	if (!x)
		return SB_E_NOMEM;
	x->e.created_s = se->time_ns / NS;
	x->e.quota = se->quota;
	x->e.used = mine ? mine->used : 0;
	x->upper = se->upper;
	for (size_t i = 0; i < se->n_snaps; i++) {
		const struct sb_overlay_snap *sn = se->snaps[i];
		const char *const texts[6] = { se->id, sn->name, sn->parent };

		x = add_line(l, texts, err);
		if (!x)
			return SB_E_NOMEM;
		x->e.created_s = sn->time_ns / NS;
		x->e.holds = (unsigned)sn->holds.n;
		x->node = sn->node ? sn->node->id : 0;
		x->layer = sn->node ? sn->node->layer : 0;
		x->e.used = sn->node ? sn->node->bytes : 0;
	}
	return 0;
}

static int
gather(struct lines *l, const char *id, struct sb_error *err)
{
	struct sb_overlay_session *se;
	int r;

	(void)pthread_mutex_lock(&l->o->mu);
	if (!id) {
		r = sb_overlay_state_each(&l->o->state, add_session, l, err);
	} else {
		se = sb_storage_overlay_find(l->o, id, err);
		r = se ? add_session(se, l, err) : SB_E_NOTFOUND;
	}
	(void)pthread_mutex_unlock(&l->o->mu);
	return r;
}

/* 0 for a directory that went away meanwhile. */
static uint64_t
measure(struct sb_storage_overlay *o, uint64_t layer)
{
	sb_autoclose int fs = sb_overlay_layer_open(o->layersfd, layer, NULL);
	uint64_t bytes = 0;

	if (fs >= 0)
		(void)sb_overlay_layer_measure(fs, false, &bytes, NULL);
	return bytes;
}

/* Remembers what was measured. */
static void
note_bytes(struct sb_storage_overlay *o, uint64_t node, uint64_t layer, uint64_t bytes)
{
	struct sb_overlay_node *n;

	(void)pthread_mutex_lock(&o->mu);
	n = sb_overlay_node_find(&o->state.tree, node);
	if (n && n->layer == layer)
		n->bytes = bytes;
	(void)pthread_mutex_unlock(&o->mu);
}

/* The sum over the node and all below it, of what is measured. */
static uint64_t
referenced(struct sb_storage_overlay *o, uint64_t node)
{
	const struct sb_overlay_node *n;
	uint64_t sum = 0;

	(void)pthread_mutex_lock(&o->mu);
	for (n = sb_overlay_node_find(&o->state.tree, node); n; n = n->parent)
		sum += n->bytes == SB_OVERLAY_UNMEASURED ? 0 : n->bytes;
	(void)pthread_mutex_unlock(&o->mu);
	return sum;
}

static bool
same_node_before(const struct lines *l, size_t i)
{
	for (size_t k = 1; k < i; k++)
		if (l->v[k].node == l->v[i].node)
			return true;
	return false;
}

/* Fills in the sizes of one session's lines. */
static void
add_sizes(struct lines *l)
{
	uint64_t sum = measure(l->o, l->v[0].upper);
	struct sb_overlay_session *se;

	for (size_t i = 1; i < l->n; i++) {
		struct line *x = &l->v[i];

		if (x->node && x->e.used == SB_OVERLAY_UNMEASURED) {
			x->e.used = measure(l->o, x->layer);
			note_bytes(l->o, x->node, x->layer, x->e.used);
		}
		x->e.referenced = referenced(l->o, x->node);
		if (x->node && !same_node_before(l, i))
			sum += x->e.used;
	}
	l->v[0].e.used = sum;
	(void)pthread_mutex_lock(&l->o->mu);
	se = sb_storage_overlay_find(l->o, l->v[0].e.id, NULL);
	if (se && se->mine)
		((struct sb_storage_overlay_mine *)se->mine)->used = sum;
	(void)pthread_mutex_unlock(&l->o->mu);
}

int
sb_storage_overlay_used(struct sb_storage *st, const char *id, uint64_t *out, struct sb_error *err)
{
	struct lines l = { .o = (struct sb_storage_overlay *)st };
	int r = gather(&l, id, err);

	if (r == 0) {
		add_sizes(&l);
		*out = l.v[0].e.used;
	}
	lines_free(&l);
	return r;
}

/*
 * Sizes are measured for one session only; for all of them that would be a walk through everything,
 * so they are what was measured last. `fn` may call the storage.
 */
int
sb_storage_overlay_list(struct sb_storage *st, const char *id, sb_storage_entry_fn fn, void *arg,
	struct sb_error *err)
{
	struct lines l = { .o = (struct sb_storage_overlay *)st };
	int r = gather(&l, id, err);

	if (r == 0 && id)
		add_sizes(&l);
	for (size_t i = 0; i < l.n && r >= 0; i++) {
		if (l.v[i].e.used == SB_OVERLAY_UNMEASURED)
			l.v[i].e.used = 0;
		r = fn(&l.v[i].e, arg, err);
	}
	lines_free(&l);
	return r < 0 ? r : 0;
}
