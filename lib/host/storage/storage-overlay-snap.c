/* SPDX-License-Identifier: MIT */
/* Snapshots of the overlay storage: by exchange of the upper, or by a copy while it is in use. */
#include "config.h"

#include <host/storage/storage-overlay-priv.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <host/storage/overlay-layer.h>

/* A snapshot on its way. */
struct taking {
	struct sb_storage_overlay *o;
	struct sb_overlay_session *se;
	struct sb_storage_overlay_mine *mine;
	const char *name;
	const struct sb_storage_live *live;
	uint64_t spare;             /* a new, empty layer */
	uint64_t node;              /* what the name means in the end */
	bool made;                  /* that node is new */
	struct sb_overlay_rec *rec; /* room for one */
	struct sb_storage_taken *out;
};

static int64_t
now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static uint64_t
id_of(const struct sb_overlay_node *n)
{
	return n ? n->id : 0;
}

/* Records the snapshot; `rec` has what is more than a name for `node`. */
static int
name_it(struct taking *t, uint64_t node, struct sb_error *err)
{
	struct sb_storage_overlay *o = t->o;
	int r;

	t->rec->kind = SB_OVERLAY_SNAP;
	t->rec->sid = t->se->id;
	t->rec->name = t->rec->head = t->name;
	t->rec->parent_name = t->se->head;
	t->rec->node = t->node = node;
	t->rec->bytes = SB_OVERLAY_UNMEASURED;
	t->rec->time_ns = now_ns();
	(void)pthread_mutex_lock(&o->mu);
	r = sb_storage_overlay_record(o, t->rec, err);
	(void)pthread_mutex_unlock(&o->mu);
	return r;
}

/* The upper is a layer from now on, with the spare one on top of it. It is not mounted. */
static int
exchange(struct taking *t, struct sb_error *err)
{
	struct sb_storage_overlay *o = t->o;
	sb_auto(sb_storage_overlay_plan) struct sb_storage_overlay_plan p = { .base = -1 };
	sb_autoclose int from = sb_overlay_layer_open(o->layersfd, t->se->upper, err);
	sb_autoclose int to = from < 0 ? -1 : sb_overlay_layer_open(o->layersfd, t->spare, err);
	uint64_t old = t->se->upper;
	struct stat st;
	int r = from < 0 ? from : to;

	if (r >= 0)
		r = fstat(from, &st) < 0 ? sb_fail_errno(err, "stat the upper") :
					   sb_overlay_layer_copy_meta(from, to, &st, false, err);
	if (r >= 0)
		r = p.base = sb_storage_overlay_base_of(o, t->se, err);
	if (r < 0)
		return r;
	p.stack[0] = t->spare;
	p.stack[1] = old;
	(void)pthread_mutex_lock(&o->mu);
	r = sb_overlay_node_stack(t->se->node, p.stack, 2, SB_OVERLAY_LAYERS_MAX, err);
	(void)pthread_mutex_unlock(&o->mu);
	if (r < 0)
		return r;
	p.n = (size_t)r;
	t->rec->parent = id_of(t->se->node);
	t->rec->layer = old;
	t->rec->upper = t->spare;
	t->rec->n_stack = p.n;
	memcpy(t->rec->stack, p.stack, p.n * sizeof p.stack[0]);
	r = name_it(t, old, err);
	if (r < 0)
		return r;
	t->made = true;
	t->spare = 0;
	(void)pthread_mutex_lock(&o->mu);
	(void)sb_overlay_node_u64s_add(&o->settle, old, NULL);
	(void)pthread_mutex_unlock(&o->mu);
	return sb_storage_overlay_enter(o, t->se, &p, err);
}

/* Nobody had it: exchanged, mounted, in the box. What fails before the record is undone. */
static int
take_idle(struct taking *t, struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r = exchange(t, err);
	char *path = NULL;

	if (r < 0 && sb_storage_overlay_mount(&t->o->st, t->se->id, &path, &why) < 0)
		sb_log(&t->o->log_to, SB_LOG_ERROR, "storage", "session %s is not mounted: %s",
			t->se->id, why.msg);
	free(path);
	if (sb_storage_overlay_give_back(t->o, t->se, t->live, &why) < 0 && r == 0)
		r = sb_fail(err, why.code, "%s", why.msg);
	return r;
}

/* How many layers are below the copy that was taken last; 0: there is none to go on from. */
static size_t
captured_depth(struct taking *t)
{
	uint64_t stack[SB_OVERLAY_LAYERS_MAX];
	struct sb_overlay_node *n;
	int r = 0;

	(void)pthread_mutex_lock(&t->o->mu);
	n = t->mine->capture ? sb_overlay_node_find(&t->o->state.tree, t->mine->capture_node) :
			       NULL;
	if (n)
		r = sb_overlay_node_stack(n, stack, 0, SB_OVERLAY_LAYERS_MAX, NULL);
	(void)pthread_mutex_unlock(&t->o->mu);
	return r > 0 ? (size_t)r : 0;
}

/* What changed since the last copy, or everything, into the spare layer. */
static int
capture(struct taking *t, bool *whole, struct sb_overlay_capture **next,
	struct sb_overlay_capture_stats *stats, struct sb_error *err)
{
	struct sb_storage_overlay *o = t->o;
	const size_t depth = captured_depth(t);
	sb_autoclose int upper = sb_overlay_layer_open(o->layersfd, t->se->upper, err);
	int r = upper;

	*whole = depth == 0 || depth >= o->flat_at;
	for (int i = 0; i < 2 && r >= 0; i++) {
		sb_autoclose int to = sb_overlay_layer_open(o->layersfd, t->spare, err);

		r = to < 0 ? to :
			     sb_overlay_capture_take(upper, to, *whole ? NULL : t->mine->capture,
				     next, stats, err);
		if (r != 1)
			break;
		*whole = true;
		r = sb_overlay_layer_make(o->layersfd, t->spare, -1, err);
	}
	return r;
}

/* Somebody has it open, and everybody stands still. */
static int
take_live(struct taking *t, struct sb_error *err)
{
	struct sb_overlay_capture_stats stats = { 0 };
	struct sb_overlay_capture *next = NULL;
	uint64_t layer = t->spare;
	bool whole;
	int r = capture(t, &whole, &next, &stats, err);

	if (r < 0)
		return r;
	t->out->live = true;
	if (!whole && stats.changed == 0) {
		sb_overlay_capture_free(next);
		t->out->empty = true;
		return name_it(t, t->mine->capture_node, err);
	}
	t->rec->parent = whole ? id_of(t->se->node) : t->mine->capture_node;
	t->rec->layer = layer;
	r = name_it(t, layer, err);
	if (r < 0) {
		sb_overlay_capture_free(next);
		return r;
	}
	t->made = true;
	t->spare = 0;
	sb_overlay_capture_free(t->mine->capture);
	t->mine->capture = next;
	t->mine->capture_node = layer;
	(void)pthread_mutex_lock(&t->o->mu);
	(void)sb_overlay_node_u64s_add(&t->o->settle, layer, NULL);
	(void)pthread_mutex_unlock(&t->o->mu);
	return 0;
}

static int
freeze(const struct sb_storage_live *live, bool on, struct sb_error *err)
{
	return live && live->freeze ? live->freeze(live->arg, on, err) : 0;
}

static int
take(struct taking *t, struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r;

	/* What is written from here on comes after the snapshot. */
	if (sb_storage_overlay_pristine(t->o, t->se)) {
		t->out->empty = true;
		return name_it(t, id_of(t->se->node), err);
	}
	t->spare = sb_storage_overlay_new_id(t->o);
	r = sb_overlay_layer_make(t->o->layersfd, t->spare, -1, err);
	if (r < 0)
		return r;
	r = freeze(t->live, true, err);
	if (r == 0) {
		r = sb_storage_overlay_take_away(t->o, t->se, t->live, false, err);
		if (r >= 0)
			r = r == 0 ? take_idle(t, err) : take_live(t, err);
	}
	if (freeze(t->live, false, &why) < 0 && r == 0)
		r = sb_fail(err, why.code, "%s", why.msg);
	return r;
}

int
sb_storage_overlay_settle_node(struct sb_storage_overlay *o, uint64_t node, struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	sb_autoclose int fs = -1;
	struct sb_overlay_node *n;
	uint64_t layer = 0;
	int r = rec ? 0 : sb_fail(err, SB_E_NOMEM, "snapshot");

	if (r < 0 || o->durability == SB_HOST_DURABLE_NONE)
		return r;
	(void)pthread_mutex_lock(&o->mu);
	n = sb_overlay_node_find(&o->state.tree, node);
	if (n && !n->durable)
		layer = n->layer;
	(void)pthread_mutex_unlock(&o->mu);
	if (layer) {
		fs = r = sb_overlay_layer_open(o->layersfd, layer, err);
		if (r >= 0)
			r = sb_overlay_layer_measure(fs, o->fast_sync, &rec->bytes, err);
		if (r == 0 && !o->fast_sync && syncfs(fs) < 0)
			r = sb_fail_errno(err, "sync the file system");
		rec->kind = SB_OVERLAY_DURABLE;
		rec->node = node;
		(void)pthread_mutex_lock(&o->mu);
		if (r == 0)
			r = sb_storage_overlay_record(o, rec, err);
		(void)pthread_mutex_unlock(&o->mu);
	}
	return r < 0 ? r : sb_storage_overlay_commit(o, err);
}

/* A snapshot that cannot be made to last is none. */
static void
take_back(struct taking *t)
{
	*t->rec = (struct sb_overlay_rec){ .kind = SB_OVERLAY_DROP,
		.sid = t->se->id,
		.name = t->name };
	(void)pthread_mutex_lock(&t->o->mu);
	if (sb_overlay_state_snap(t->se, t->name))
		(void)sb_storage_overlay_record(t->o, t->rec, NULL);
	(void)pthread_mutex_unlock(&t->o->mu);
}

/* One more layer must fit. */
static int
make_room(struct sb_storage_overlay *o, struct sb_overlay_session *se, struct sb_error *err)
{
	uint64_t stack[SB_OVERLAY_LAYERS_MAX], node;
	int r;

	(void)pthread_mutex_lock(&o->mu);
	r = sb_overlay_node_stack(se->node, stack, 0, SB_OVERLAY_LAYERS_MAX - 3, NULL);
	node = id_of(se->node);
	(void)pthread_mutex_unlock(&o->mu);
	return r < 0 ? sb_storage_overlay_flatten(o, node, err) : 0;
}

static int
start(struct taking *t, const char *id, struct sb_error *err)
{
	int r = t->rec ? 0 : sb_fail(err, SB_E_NOMEM, "snapshot");

	(void)pthread_mutex_lock(&t->o->mu);
	if (r == 0) {
		t->se = sb_storage_overlay_find(t->o, id, err);
		r = t->se ? 0 : SB_E_NOTFOUND;
	}
	if (r == 0 && sb_overlay_state_snap(t->se, t->name))
		r = sb_fail(err, SB_E_SNAPSHOT_EXISTS, "%s: %s", sb_code_text(SB_E_SNAPSHOT_EXISTS),
			t->name);
	if (r == 0) {
		t->mine = sb_storage_overlay_mine(t->se, err);
		r = t->mine ? 0 : SB_E_NOMEM;
	}
	(void)pthread_mutex_unlock(&t->o->mu);
	return r < 0 ? r : make_room(t->o, t->se, err);
}

int
sb_storage_overlay_snapshot(struct sb_storage *st, const char *id, const char *snap,
	const struct sb_storage_live *live, struct sb_storage_taken *out, struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	struct sb_storage_taken taken = { 0 };
	struct taking t = { .o = (struct sb_storage_overlay *)st,
		.name = snap,
		.live = live,
		.rec = rec,
		.out = &taken };
	int r = start(&t, id, err);

	if (r < 0)
		return r;
	r = take(&t, err);
	if (t.spare)
		sb_storage_overlay_discard(t.o, t.spare);
	if (r == 0) {
		r = t.made ? sb_storage_overlay_settle_node(t.o, t.node, err) :
			     sb_storage_overlay_commit(t.o, err);
		if (r < 0)
			take_back(&t);
	}
	if (t.made)
		sb_storage_overlay_poke(t.o);
	if (r == 0 && out)
		*out = taken;
	return r;
}

int
sb_storage_overlay_unchanged(struct sb_storage *st, const char *id, char out[SB_HOST_NAME_MAX + 1],
	struct sb_error *err)
{
	struct sb_storage_overlay *o = (struct sb_storage_overlay *)st;
	const struct sb_storage_overlay_mine *mine = NULL;
	struct sb_overlay_session *se;
	struct sb_overlay_snap *head = NULL;
	bool on_node = false, on_copy = false;
	sb_autoclose int upper = -1;
	int r;

	(void)pthread_mutex_lock(&o->mu);
	se = sb_storage_overlay_find(o, id, err);
	if (se) {
		mine = se->mine;
		head = sb_overlay_state_snap(se, se->head);
		on_node = head && head->node == se->node;
		on_copy = head && head->node && mine && mine->capture &&
			head->node->id == mine->capture_node;
		(void)snprintf(out, SB_HOST_NAME_MAX + 1, "%s", se->head);
	}
	(void)pthread_mutex_unlock(&o->mu);
	if (!se)
		return SB_E_NOTFOUND;
	if (on_node && sb_storage_overlay_pristine(o, se))
		return 1;
	if (!on_copy)
		return 0;
	upper = sb_overlay_layer_open(o->layersfd, se->upper, err);
	if (upper < 0)
		return upper;
	r = sb_overlay_capture_differs(upper, mine->capture, err);
	return r < 0 ? r : !r;
}
