/* SPDX-License-Identifier: MIT */
/* The background work of the overlay storage: trash, compaction, the log. */
#include "config.h"

#include <host/storage/storage-overlay-priv.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/path.h>
#include <host/storage/overlay-layer.h>
#include <host/storage/overlay-view.h>

#define REWRITE_MIN (1u << 20)
/* What a record of a node, a session or a snapshot takes in the log, roughly. */
#define RECORD_BYTES 96

void
sb_storage_overlay_poke(struct sb_storage_overlay *o)
{
	(void)pthread_mutex_lock(&o->mu);
	o->poke = true;
	(void)pthread_cond_broadcast(&o->cv);
	(void)pthread_mutex_unlock(&o->mu);
}

/* Takes the list over. */
static struct sb_overlay_u64s
grab(struct sb_storage_overlay *o, struct sb_overlay_u64s *from)
{
	struct sb_overlay_u64s v;

	(void)pthread_mutex_lock(&o->mu);
	v = *from;
	*from = (struct sb_overlay_u64s){ 0 };
	(void)pthread_mutex_unlock(&o->mu);
	return v;
}

static bool
needed(struct sb_storage_overlay *o, uint64_t layer)
{
	bool yes;

	(void)pthread_mutex_lock(&o->mu);
	yes = sb_overlay_node_needs(&o->state.tree, layer);
	(void)pthread_mutex_unlock(&o->mu);
	return yes;
}

/*
 * Directories that the log needs no more; not before that is on the disk, or a power loss would
 * leave a log that names what is gone.
 */
static int
bury(struct sb_storage_overlay *o, struct sb_error *err)
{
	struct sb_overlay_u64s dead = grab(o, &o->state.tree.dead);
	int r = dead.n ? sb_overlay_log_sync(o->log, err) : 0;

	for (size_t i = 0; i < dead.n; i++) {
		if (r == 0 && !needed(o, dead.v[i]))
			r = sb_overlay_layer_trash(o->layersfd, dead.v[i], o->trashfd, err);
		if (r < 0)
			sb_storage_overlay_discard(o, dead.v[i]);
	}
	free(dead.v);
	return r;
}

static int
settle(struct sb_storage_overlay *o, struct sb_error *err)
{
	struct sb_overlay_u64s v = grab(o, &o->settle);
	int r = 0;

	for (size_t i = 0; i < v.n && r == 0; i++)
		r = sb_overlay_layer_settle(o->layersfd, v.v[i], err);
	free(v.v);
	return r;
}

static int
empty_trash(struct sb_storage_overlay *o, struct sb_error *err)
{
	int dup = openat(o->trashfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;
	int r = 0;

	if (!d) {
		if (dup >= 0)
			(void)close(dup);
		return sb_fail_errno(err, "read the trash");
	}
	while (r == 0 && (e = readdir(d)))
		if (e->d_name[0] != '.')
			r = sb_path_remove_tree(o->trashfd, e->d_name, err);
	return r;
}

/* The log anew, when most of it is history. */
static int
shorten_log(struct sb_storage_overlay *o, struct sb_error *err)
{
	uint64_t live;
	int r = 0;

	(void)pthread_mutex_lock(&o->mu);
	live = (o->state.tree.n * 2 + o->state.n_sessions) * RECORD_BYTES;
	if (sb_overlay_log_size(o->log) > REWRITE_MIN && sb_overlay_log_size(o->log) > 4 * live)
		r = sb_overlay_log_rewrite(o->log, sb_overlay_state_dump, &o->state, err);
	(void)pthread_mutex_unlock(&o->mu);
	return r;
}

/* One layer out of the layers `v`, made, and its number. */
static int
merge_layers(struct sb_storage_overlay *o, const uint64_t *v, size_t n, uint64_t *out,
	uint64_t *bytes, struct sb_error *err)
{
	int fds[SB_OVERLAY_LAYERS_MAX + 1];
	const struct sb_overlay_view view = { fds, n };
	uint64_t id = sb_storage_overlay_new_id(o);
	sb_autoclose int to = -1;
	size_t open = 0;
	int r = sb_overlay_layer_make(o->layersfd, id, -1, err);

	for (; open < n && r >= 0; open += r >= 0)
		fds[open] = r = sb_overlay_layer_open(o->layersfd, v[open], err);
	if (r >= 0)
		to = r = sb_overlay_layer_open(o->layersfd, id, err);
	if (r >= 0)
		r = sb_overlay_view_merge(&view, to, NULL, err);
	if (r == 0)
		r = sb_overlay_layer_measure(to, false, bytes, err);
	/* Where the log's sync does not bring the directories along. */
	if (r == 0 && !o->fast_sync && o->durability != SB_HOST_DURABLE_NONE && syncfs(to) < 0)
		r = sb_fail_errno(err, "sync the file system");
	if (r == 0)
		r = sb_overlay_layer_settle(o->layersfd, id, err);
	while (open > 0)
		(void)close(fds[--open]);
	if (r < 0)
		sb_storage_overlay_discard(o, id);
	*out = id;
	return r;
}

/* The node with another layer, other parent, other flat layer, if it is still what it was. */
static int
change_node(struct sb_storage_overlay *o, const struct sb_overlay_node *was,
	struct sb_overlay_rec *rec, struct sb_error *err)
{
	struct sb_overlay_node *n;
	int r = SB_E_CHANGED;

	(void)pthread_mutex_lock(&o->mu);
	n = sb_overlay_node_find(&o->state.tree, was->id);
	if (n && n->layer == was->layer && n->parent == was->parent && n->flat == was->flat) {
		rec->kind = SB_OVERLAY_NODE;
		rec->node = n->id;
		rec->durable = n->durable;
		r = sb_storage_overlay_record(o, rec, err);
	}
	(void)pthread_mutex_unlock(&o->mu);
	return r;
}

int
sb_storage_overlay_flatten(struct sb_storage_overlay *o, uint64_t node, struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	uint64_t stack[SB_OVERLAY_LAYERS_MAX + 1];
	struct sb_overlay_node *n, was;
	uint64_t bytes;
	int r = rec ? 0 : sb_fail(err, SB_E_NOMEM, "compaction");

	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&o->mu);
	n = sb_overlay_node_find(&o->state.tree, node);
	r = n ? sb_overlay_node_stack(n, stack, 0, SB_OVERLAY_LAYERS_MAX + 1, err) : 0;
	if (n && r > 1) {
		was = *n;
		sb_overlay_node_pin(n);
	}
	(void)pthread_mutex_unlock(&o->mu);
	if (r <= 1)
		return r < 0 ? r : 0;
	r = merge_layers(o, stack, (size_t)r, &rec->flat, &bytes, err);
	if (r == 0) {
		rec->parent = was.parent ? was.parent->id : 0;
		rec->layer = was.layer;
		rec->bytes = was.bytes;
		r = change_node(o, &was, rec, err);
		if (r < 0)
			sb_storage_overlay_discard(o, rec->flat);
	}
	(void)pthread_mutex_lock(&o->mu);
	sb_overlay_node_unpin(&o->state.tree, n);
	(void)pthread_mutex_unlock(&o->mu);
	return r == SB_E_CHANGED ? 0 : r;
}

/* Sessions whose stack is long: their nodes. */
struct long_ones {
	unsigned at;
	struct sb_overlay_u64s v;
};

static int
find_long(struct sb_overlay_session *se, void *arg, struct sb_error *err)
{
	struct long_ones *l = arg;
	uint64_t stack[SB_OVERLAY_LAYERS_MAX];

	if (se->node && sb_overlay_node_stack(se->node, stack, 0, l->at, NULL) < 0)
		return sb_overlay_node_u64s_add(&l->v, se->node->id, err);
	return 0;
}

static int
flatten_long(struct sb_storage_overlay *o, struct sb_error *err)
{
	struct long_ones l = { .at = o->flat_at };
	int r;

	(void)pthread_mutex_lock(&o->mu);
	r = sb_overlay_state_each(&o->state, find_long, &l, err);
	(void)pthread_mutex_unlock(&o->mu);
	for (size_t i = 0; i < l.v.n && r == 0; i++)
		r = sb_storage_overlay_flatten(o, l.v.v[i], err);
	free(l.v.v);
	return r;
}

/* Nothing but its one child needs it. */
static bool
nameless(const struct sb_overlay_node *n)
{
	return n && n->named == 0 && n->refs == 1;
}

/* A node and the nameless run below it, to become one layer. */
struct run {
	struct sb_overlay_node was;
	uint64_t layers[SB_OVERLAY_LAYERS_MAX];
	size_t n;
	uint64_t below; /* the node they stand on */
	bool promote;   /* the flat layer is all that is needed */
};

/* The layers of `n` and of the nameless nodes below it. */
static void
gather_run(const struct sb_overlay_node *n, struct run *run)
{
	const struct sb_overlay_node *p = n->parent;

	*run = (struct run){ .was = *n };
	run->layers[run->n++] = n->layer;
	for (; nameless(p) && run->n < SB_OVERLAY_LAYERS_MAX; p = p->parent)
		run->layers[run->n++] = p->layer;
	run->below = p ? p->id : 0;
	run->promote = n->flat && n->parent && !p;
}

/*
 * Looks for the next node that has something to merge: a flat layer with only nameless nodes below
 * it, or a long run of them below a node that is needed for itself. With `mu` held.
 */
static bool
find_run(struct sb_storage_overlay *o, struct run *run)
{
	for (size_t i = 0; i < o->state.tree.n_buckets; i++)
		for (struct sb_overlay_node *n = o->state.tree.bucket[i]; n; n = n->next) {
			if (!nameless(n->parent))
				continue;
			gather_run(n, run);
			if (run->promote || (!nameless(n) && run->n > o->merge_at))
				return true;
		}
	return false;
}

/* 1: one was found and is done. */
static int
merge_run(struct sb_storage_overlay *o, struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	sb_autofree struct run *run = malloc(sizeof *run);
	struct sb_overlay_node *n;
	bool found;
	int r = 0;

	if (!rec || !run)
		return sb_fail(err, SB_E_NOMEM, "compaction");
	(void)pthread_mutex_lock(&o->mu);
	found = o->merge_due && find_run(o, run);
	o->merge_due = found;
	n = found ? sb_overlay_node_find(&o->state.tree, run->was.id) : NULL;
	sb_overlay_node_pin(n);
	(void)pthread_mutex_unlock(&o->mu);
	if (!found)
		return 0;
	rec->parent = run->below;
	if (run->promote) {
		rec->layer = run->was.flat;
		rec->bytes = SB_OVERLAY_UNMEASURED;
	} else {
		r = merge_layers(o, run->layers, run->n, &rec->layer, &rec->bytes, err);
		rec->flat = run->was.flat;
	}
	if (r == 0) {
		r = change_node(o, &run->was, rec, err);
		if (r < 0 && !run->promote)
			sb_storage_overlay_discard(o, rec->layer);
	}
	(void)pthread_mutex_lock(&o->mu);
	sb_overlay_node_unpin(&o->state.tree, n);
	(void)pthread_mutex_unlock(&o->mu);
	return r < 0 && r != SB_E_CHANGED ? r : 1;
}

/* A whole round, with `work_mu` held. */
static int
round_of_work(struct sb_storage_overlay *o, struct sb_error *err)
{
	int r = settle(o, err);

	if (r == 0)
		r = flatten_long(o, err);
	while (r == 0 && (r = merge_run(o, err)) == 1)
		r = 0;
	if (r == 0)
		r = bury(o, err);
	if (r == 0)
		r = empty_trash(o, err);
	return r < 0 ? r : shorten_log(o, err);
}

int
sb_storage_overlay_sweep(struct sb_storage *st, struct sb_error *err)
{
	struct sb_storage_overlay *o = (struct sb_storage_overlay *)st;
	int r;

	(void)pthread_mutex_lock(&o->work_mu);
	r = round_of_work(o, err);
	(void)pthread_mutex_unlock(&o->work_mu);
	return r;
}

static void *
work(void *arg)
{
	struct sb_storage_overlay *o = arg;
	struct sb_error why = { 0 };

	(void)pthread_mutex_lock(&o->mu);
	while (!o->stop) {
		if (!o->poke) {
			(void)pthread_cond_wait(&o->cv, &o->mu);
			continue;
		}
		o->poke = false;
		(void)pthread_mutex_unlock(&o->mu);
		(void)pthread_mutex_lock(&o->work_mu);
		if (round_of_work(o, &why) < 0)
			sb_log(&o->log_to, SB_LOG_WARN, "storage", "later: %s", why.msg);
		(void)pthread_mutex_unlock(&o->work_mu);
		(void)pthread_mutex_lock(&o->mu);
	}
	(void)pthread_mutex_unlock(&o->mu);
	return NULL;
}

int
sb_storage_overlay_work_start(struct sb_storage_overlay *o, struct sb_error *err)
{
	if (pthread_create(&o->worker, NULL, work, o) != 0)
		return sb_fail(err, SB_E_SYS, "start a thread");
	o->worker_on = true;
	return 0;
}

void
sb_storage_overlay_work_stop(struct sb_storage_overlay *o)
{
	(void)pthread_mutex_lock(&o->mu);
	o->stop = true;
	(void)pthread_cond_broadcast(&o->cv);
	(void)pthread_mutex_unlock(&o->mu);
	if (o->worker_on)
		(void)pthread_join(o->worker, NULL);
	o->worker_on = false;
}
