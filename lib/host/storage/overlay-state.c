/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/overlay-state.h>

#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/strlist.h>

#define BUCKETS 4096

static size_t
hash_text(const char *s)
{
	uint64_t h = 1469598103934665603u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211u;
	return (size_t)(h ^ (h >> 32));
}

int
sb_overlay_state_init(struct sb_overlay_state *s, struct sb_error *err)
{
	int r;

	*s = (struct sb_overlay_state){ .next_project = 1 };
	r = sb_overlay_node_init(&s->tree, err);
	if (r < 0)
		return r;
	s->sessions = calloc(BUCKETS, sizeof(*s->sessions));
	if (s->sessions)
		return 0;
	sb_overlay_node_free_all(&s->tree);
	return sb_fail(err, SB_E_NOMEM, "storage overlay");
}

static void
snap_free(struct sb_overlay_snap *sn)
{
	if (!sn)
		return;
	free(sn->name);
	free(sn->parent);
	sb_strlist_free(&sn->holds);
	free(sn);
}

static void
session_free(struct sb_overlay_state *s, struct sb_overlay_session *se)
{
	if (!se)
		return;
	for (size_t i = 0; i < se->n_snaps; i++)
		snap_free(se->snaps[i]);
	if (se->mine && s->forget)
		s->forget(se->mine);
	free(se->snaps);
	free(se->id);
	free(se->base);
	free(se->origin_id);
	free(se->origin_snap);
	free(se->head);
	free(se->stack);
	free(se);
}

void
sb_overlay_state_free(struct sb_overlay_state *s)
{
	for (size_t i = 0; s->sessions && i < BUCKETS; i++)
		while (s->sessions[i]) {
			struct sb_overlay_session *se = s->sessions[i];

			s->sessions[i] = se->next;
			session_free(s, se);
		}
	free(s->sessions);
	sb_overlay_node_free_all(&s->tree);
	*s = (struct sb_overlay_state){ 0 };
}

struct sb_overlay_session *
sb_overlay_state_session(const struct sb_overlay_state *s, const char *id)
{
	struct sb_overlay_session *se = s->sessions[hash_text(id) % BUCKETS];

	while (se && strcmp(se->id, id) != 0)
		se = se->next;
	return se;
}

struct sb_overlay_snap *
sb_overlay_state_snap(const struct sb_overlay_session *se, const char *name)
{
	for (size_t i = se->n_snaps; i-- > 0;)
		if (strcmp(se->snaps[i]->name, name) == 0)
			return se->snaps[i];
	return NULL;
}

/* The mount in force has these layers from now on. */
static int
set_stack(struct sb_overlay_state *s, struct sb_overlay_session *se, const uint64_t *v, size_t n,
	struct sb_error *err)
{
	uint64_t *copy = n ? malloc(n * sizeof *copy) : NULL, *old = se->stack;
	size_t n_old = se->n_stack;

	if (n && !copy)
		return sb_fail(err, SB_E_NOMEM, "layers");
	for (size_t i = 0; i < n; i++) {
		copy[i] = v[i];
		if (sb_overlay_node_keep(&s->tree, v[i], err) < 0) {
			while (i-- > 0)
				sb_overlay_node_let_go(&s->tree, v[i]);
			free(copy);
			return SB_E_NOMEM;
		}
	}
	se->stack = copy;
	se->n_stack = n;
	for (size_t i = 0; i < n_old; i++)
		sb_overlay_node_let_go(&s->tree, old[i]);
	free(old);
	return 0;
}

static int
set_text(char **to, const char *text, struct sb_error *err)
{
	char *copy = strdup(text ? text : "");

	if (!copy)
		return sb_fail(err, SB_E_NOMEM, "session");
	free(*to);
	*to = copy;
	return 0;
}

static int
session_fill(struct sb_overlay_session *se, const struct sb_overlay_rec *r, struct sb_error *err)
{
	int e = set_text(&se->id, r->sid, err);

	if (e == 0)
		e = set_text(&se->base, r->base, err);
	if (e == 0)
		e = set_text(&se->origin_id, r->origin_id, err);
	if (e == 0)
		e = set_text(&se->origin_snap, r->origin_snap, err);
	if (e == 0)
		e = set_text(&se->head, r->head, err);
	se->base_ino = r->base_ino;
	se->base_btime_ns = r->base_btime_ns;
	se->owner = (uint32_t)r->owner;
	se->upper = r->upper;
	se->quota = r->quota;
	se->project = r->project;
	se->time_ns = r->time_ns;
	return e;
}

static int
apply_create(struct sb_overlay_state *s, const struct sb_overlay_rec *r, struct sb_error *err)
{
	struct sb_overlay_session *se, **bucket;
	struct sb_overlay_node *node;
	int e = sb_overlay_node_named(&s->tree, r->node, &node, err);

	if (e < 0)
		return e;
	if (!*r->sid || !r->upper || sb_overlay_state_session(s, r->sid))
		return sb_fail(err, SB_E_CORRUPT, "session %s cannot be made", r->sid);
	se = calloc(1, sizeof *se);
	e = se ? session_fill(se, r, err) : sb_fail(err, SB_E_NOMEM, "session");
	if (e == 0)
		e = sb_overlay_node_keep(&s->tree, r->upper, err);
	if (e < 0) {
		session_free(s, se);
		return e;
	}
	se->node = node;
	sb_overlay_node_pin(node);
	e = set_stack(s, se, r->stack, r->n_stack, err);
	if (r->project >= s->next_project)
		s->next_project = r->project + 1;
	bucket = &s->sessions[hash_text(se->id) % BUCKETS];
	se->next = *bucket;
	*bucket = se;
	s->n_sessions++;
	return e;
}

/* A record about a session that must be there. */
static int
find_session(struct sb_overlay_state *s, const struct sb_overlay_rec *r,
	struct sb_overlay_session **out, struct sb_error *err)
{
	*out = sb_overlay_state_session(s, r->sid);
	return *out ? 0 : sb_fail(err, SB_E_CORRUPT, "session %s is not there", r->sid);
}

static int
snaps_add(struct sb_overlay_session *se, struct sb_overlay_snap *sn, struct sb_error *err)
{
	if (se->n_snaps == se->cap_snaps) {
		size_t cap = se->cap_snaps ? se->cap_snaps * 2 : 8;
		struct sb_overlay_snap **v = reallocarray(se->snaps, cap, sizeof(*v));

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "snapshot");
		se->snaps = v;
		se->cap_snaps = cap;
	}
	se->snaps[se->n_snaps++] = sn;
	return 0;
}

/* The session stands on `node` with a new upper. */
static int
move_on(struct sb_overlay_state *s, struct sb_overlay_session *se, struct sb_overlay_node *node,
	const struct sb_overlay_rec *r, struct sb_error *err)
{
	uint64_t upper = se->upper;
	int e = sb_overlay_node_keep(&s->tree, r->upper, err);

	if (e < 0)
		return e;
	e = set_stack(s, se, r->stack, r->n_stack, err);
	if (e < 0) {
		sb_overlay_node_let_go(&s->tree, r->upper);
		return e;
	}
	sb_overlay_node_pin(node);
	sb_overlay_node_unpin(&s->tree, se->node);
	se->node = node;
	se->upper = r->upper;
	sb_overlay_node_let_go(&s->tree, upper);
	return 0;
}

static int
apply_snap(struct sb_overlay_state *s, const struct sb_overlay_rec *r, struct sb_error *err)
{
	struct sb_overlay_session *se;
	struct sb_overlay_snap *sn;
	struct sb_overlay_node *node = NULL;
	int e = find_session(s, r, &se, err);

	if (e < 0)
		return e;
	if (!*r->name || sb_overlay_state_snap(se, r->name))
		return sb_fail(err, SB_E_CORRUPT, "snapshot %s cannot be made", r->name);
	sn = calloc(1, sizeof *sn);
	e = sn ? set_text(&sn->name, r->name, err) : sb_fail(err, SB_E_NOMEM, "snapshot");
	if (e == 0)
		e = set_text(&sn->parent, r->parent_name, err);
	if (e == 0)
		e = r->layer ? sb_overlay_node_add(&s->tree, r, &node, err) :
			       sb_overlay_node_named(&s->tree, r->node, &node, err);
	sb_overlay_node_pin(node);
	if (e == 0 && r->upper)
		e = move_on(s, se, node, r, err);
	if (e == 0)
		e = snaps_add(se, sn, err);
	if (e < 0) {
		sb_overlay_node_unpin(&s->tree, node);
		snap_free(sn);
		return e;
	}
	sn->time_ns = r->time_ns;
	sn->node = node;
	/* A snapshot that was put aside does not become what the session stands on. */
	return r->head && *r->head ? set_text(&se->head, r->head, err) : 0;
}

static int
snap_drop(struct sb_overlay_state *s, struct sb_overlay_session *se, const char *name,
	struct sb_error *err)
{
	for (size_t i = 0; i < se->n_snaps; i++)
		if (strcmp(se->snaps[i]->name, name) == 0) {
			struct sb_overlay_snap *sn = se->snaps[i];

			memmove(&se->snaps[i], &se->snaps[i + 1],
				(--se->n_snaps - i) * sizeof(*se->snaps));
			/* Who came after it comes after the one before it. */
			for (size_t k = 0; k < se->n_snaps; k++)
				if (strcmp(se->snaps[k]->parent, name) == 0 &&
					set_text(&se->snaps[k]->parent, sn->parent, err) < 0)
					return SB_E_NOMEM;
			if (strcmp(se->head, name) == 0 && set_text(&se->head, sn->parent, err) < 0)
				return SB_E_NOMEM;
			sb_overlay_node_unpin(&s->tree, sn->node);
			snap_free(sn);
			return 0;
		}
	return sb_fail(err, SB_E_CORRUPT, "snapshot %s is not there", name);
}

static int
apply_roll(struct sb_overlay_state *s, const struct sb_overlay_rec *r, struct sb_error *err)
{
	struct sb_overlay_session *se;
	struct sb_overlay_node *node;
	int e = find_session(s, r, &se, err);

	if (e == 0)
		e = sb_overlay_node_named(&s->tree, r->node, &node, err);
	if (e == 0 && !r->upper)
		e = sb_fail(err, SB_E_CORRUPT, "session %s would have no upper", r->sid);
	if (e == 0)
		e = move_on(s, se, node, r, err);
	for (size_t i = 0; i < r->n_names && e == 0; i++)
		e = snap_drop(s, se, r->names[i], err);
	return e < 0 ? e : set_text(&se->head, r->head, err);
}

static int
apply_hold(struct sb_overlay_state *s, const struct sb_overlay_rec *r, struct sb_error *err)
{
	struct sb_overlay_session *se;
	struct sb_overlay_snap *sn;
	int e = find_session(s, r, &se, err);

	if (e < 0)
		return e;
	sn = sb_overlay_state_snap(se, r->name);
	if (!sn)
		return sb_fail(err, SB_E_CORRUPT, "snapshot %s is not there", r->name);
	if (r->kind == SB_OVERLAY_HOLD) {
		sb_strlist_add(&sn->holds, r->tag);
		return sb_strlist_check(&sn->holds, err);
	}
	for (size_t i = 0; i < sn->holds.n; i++)
		if (strcmp(sn->holds.v[i], r->tag) == 0) {
			free(sn->holds.v[i]);
			memmove(&sn->holds.v[i], &sn->holds.v[i + 1],
				(sn->holds.n - i) * sizeof(char *));
			sn->holds.n--;
			return 0;
		}
	return 0;
}

static int
apply_destroy(struct sb_overlay_state *s, const struct sb_overlay_rec *r, struct sb_error *err)
{
	struct sb_overlay_session *se, **p;
	int e = find_session(s, r, &se, err);

	if (e < 0)
		return e;
	p = &s->sessions[hash_text(se->id) % BUCKETS];
	while (*p != se)
		p = &(*p)->next;
	*p = se->next;
	s->n_sessions--;
	for (size_t i = 0; i < se->n_snaps; i++)
		sb_overlay_node_unpin(&s->tree, se->snaps[i]->node);
	sb_overlay_node_unpin(&s->tree, se->node);
	(void)set_stack(s, se, NULL, 0, NULL);
	sb_overlay_node_let_go(&s->tree, se->upper);
	session_free(s, se);
	return 0;
}

static int
apply_session(struct sb_overlay_state *s, const struct sb_overlay_rec *r, struct sb_error *err)
{
	struct sb_overlay_session *se;
	int e = find_session(s, r, &se, err);

	if (e < 0)
		return e;
	return r->kind == SB_OVERLAY_MOUNT ? set_stack(s, se, r->stack, r->n_stack, err) :
					     snap_drop(s, se, r->name, err);
}

static int
apply_durable(struct sb_overlay_state *s, const struct sb_overlay_rec *r, struct sb_error *err)
{
	struct sb_overlay_node *n = sb_overlay_node_find(&s->tree, r->node);

	/* Its name may be gone already. */
	(void)err;
	if (n) {
		n->durable = true;
		n->bytes = r->bytes;
	}
	return 0;
}

int
sb_overlay_state_apply(struct sb_overlay_state *s, const struct sb_overlay_rec *r,
	struct sb_error *err)
{
	s->clean = r->kind == SB_OVERLAY_CLEAN;
	s->clean_ns = r->time_ns;
	switch (r->kind) {
	case SB_OVERLAY_OPEN: (void)snprintf(s->boot, sizeof s->boot, "%s", r->boot); return 0;
	case SB_OVERLAY_CLEAN: return 0;
	case SB_OVERLAY_CREATE: return apply_create(s, r, err);
	case SB_OVERLAY_NODE: return sb_overlay_node_apply(&s->tree, r, err);
	case SB_OVERLAY_SNAP: return apply_snap(s, r, err);
	case SB_OVERLAY_ROLL: return apply_roll(s, r, err);
	case SB_OVERLAY_DURABLE: return apply_durable(s, r, err);
	case SB_OVERLAY_MOUNT:
	case SB_OVERLAY_DROP: return apply_session(s, r, err);
	case SB_OVERLAY_HOLD:
	case SB_OVERLAY_RELEASE: return apply_hold(s, r, err);
	case SB_OVERLAY_DESTROY: return apply_destroy(s, r, err);
	default: return sb_fail(err, SB_E_CORRUPT, "unknown record %u", r->kind);
	}
}

int
sb_overlay_state_each(struct sb_overlay_state *s,
	int (*fn)(struct sb_overlay_session *se, void *arg, struct sb_error *err), void *arg,
	struct sb_error *err)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct sb_overlay_session *se = s->sessions[i], *next; se; se = next) {
			int r;

			next = se->next;
			r = fn(se, arg, err);
			if (r < 0)
				return r;
		}
	return 0;
}

/* Parents first: the number of nodes below tells the order. */
struct deep {
	const struct sb_overlay_node *n;
	size_t depth;
};

static int
by_depth(const void *a, const void *b)
{
	const struct deep *x = a, *y = b;

	return x->depth < y->depth ? -1 : x->depth > y->depth;
}

static int
dump_nodes(struct sb_overlay_log *l, const struct sb_overlay_nodes *t, struct sb_error *err)
{
	sb_autofree struct deep *v = calloc(t->n + 1, sizeof *v);
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	size_t n = 0;
	int r = 0;

	if (!v || !rec)
		return sb_fail(err, SB_E_NOMEM, "log");
	for (size_t i = 0; i < t->n_buckets; i++)
		for (const struct sb_overlay_node *x = t->bucket[i]; x; x = x->next) {
			v[n].n = x;
			for (const struct sb_overlay_node *p = x; p; p = p->parent)
				v[n].depth++;
			n++;
		}
	qsort(v, n, sizeof *v, by_depth);
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct sb_overlay_node *x = v[i].n;

		rec->kind = SB_OVERLAY_NODE;
		rec->node = x->id;
		rec->parent = x->parent ? x->parent->id : 0;
		rec->layer = x->layer;
		rec->flat = x->flat;
		rec->bytes = x->bytes;
		rec->durable = x->durable;
		r = sb_overlay_log_append(l, rec, err);
	}
	return r;
}

static int
dump_snap(struct sb_overlay_log *l, const struct sb_overlay_session *se,
	const struct sb_overlay_snap *sn, struct sb_overlay_rec *rec, struct sb_error *err)
{
	int r;

	*rec = (struct sb_overlay_rec){ .kind = SB_OVERLAY_SNAP,
		.sid = se->id,
		.name = sn->name,
		.parent_name = sn->parent,
		.node = sn->node ? sn->node->id : 0,
		.time_ns = sn->time_ns };
	r = sb_overlay_log_append(l, rec, err);
	rec->kind = SB_OVERLAY_HOLD;
	for (size_t i = 0; i < sn->holds.n && r == 0; i++) {
		rec->tag = sn->holds.v[i];
		r = sb_overlay_log_append(l, rec, err);
	}
	return r;
}

static int
dump_session(struct sb_overlay_session *se, void *arg, struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = malloc(sizeof *rec);
	struct sb_overlay_log *l = arg;
	int r;

	if (!rec)
		return sb_fail(err, SB_E_NOMEM, "log");
	*rec = (struct sb_overlay_rec){ .kind = SB_OVERLAY_CREATE,
		.sid = se->id,
		.base = se->base,
		.base_ino = se->base_ino,
		.base_btime_ns = se->base_btime_ns,
		.owner = se->owner,
		.origin_id = se->origin_id,
		.origin_snap = se->origin_snap,
		.head = se->head,
		.node = se->node ? se->node->id : 0,
		.upper = se->upper,
		.quota = se->quota,
		.project = se->project,
		.time_ns = se->time_ns,
		.n_stack = se->n_stack };
	if (se->n_stack)
		memcpy(rec->stack, se->stack, se->n_stack * sizeof *se->stack);
	r = sb_overlay_log_append(l, rec, err);
	for (size_t i = 0; i < se->n_snaps && r == 0; i++)
		r = dump_snap(l, se, se->snaps[i], rec, err);
	return r;
}

int
sb_overlay_state_dump(struct sb_overlay_log *l, void *arg, struct sb_error *err)
{
	struct sb_overlay_state *s = arg;
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	int r;

	if (!rec)
		return sb_fail(err, SB_E_NOMEM, "log");
	rec->kind = SB_OVERLAY_OPEN;
	rec->boot = s->boot;
	r = sb_overlay_log_append(l, rec, err);
	if (r == 0)
		r = dump_nodes(l, &s->tree, err);
	return r < 0 ? r : sb_overlay_state_each(s, dump_session, l, err);
}
