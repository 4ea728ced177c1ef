/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/hostimpl.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <host/storage/idcheck.h>

/* Names of the storage's own that pass by. */
#define ZFS_DIFF_PREFIX "zfs-diff-"
/* How many names a turn tries when something foreign has its first one. */
#define TURN_TRIES 8

/* "<prefix>-NNNN" or "<prefix>-NNNN-k". */
static bool
turn_name(const struct sb_host *h, const char *name, uint64_t *turn)
{
	size_t len = strlen(h->o.snapshot_prefix);
	const char *p = name + len + 1;
	uint64_t v = 0;

	if (!sb_str_starts(name, h->o.snapshot_prefix) || name[len] != '-' ||
		!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p) && v < UINT64_MAX / 100; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	*turn = v;
	if (*p == '-' && isdigit((unsigned char)p[1]))
		for (p++; isdigit((unsigned char)*p);)
			p++;
	return *p == '\0';
}

enum sb_host_snap_kind
sb_hostimpl_snap_kind(const struct sb_host *h, const char *name, uint64_t *turn)
{
	if (turn_name(h, name, turn))
		return SB_HOST_SNAP_TURN;
	if (sb_str_starts(name, "tool-"))
		return SB_HOST_SNAP_TOOL;
	return sb_str_starts(name, "fork-") ? SB_HOST_SNAP_FORK : SB_HOST_SNAP_NAMED;
}

static int
check_name(const struct sb_host *h, const char *name, struct sb_error *err)
{
	uint64_t turn;
	int r = sb_idcheck_snapshot(name, err);

	if (r < 0)
		return r;
	if (sb_hostimpl_snap_kind(h, name, &turn) != SB_HOST_SNAP_NAMED ||
		sb_str_starts(name, ZFS_DIFF_PREFIX))
		return sb_fail(err, SB_E_INVAL,
			"snapshot name \"%.80s\" is reserved (%s-NNNN, tool-..., fork-... are made "
			"by the host)",
			name, h->o.snapshot_prefix);
	return 0;
}

static int
describe(struct sb_host *h, const struct sb_hsess *s, const struct sb_snap *snap,
	struct sb_host_snapshot *out, struct sb_error *err)
{
	char *dataset = h->st->ops->snapshot_name(h->st, s->id, snap->name);

	if (!dataset)
		return sb_fail(err, SB_E_NOMEM, "snapshot %s", snap->name);
	*out = (struct sb_host_snapshot){ .kind = snap->kind,
		.turn = snap->turn,
		.created_ns = snap->created_ns,
		.holds = sb_snap_holds(snap),
		.forks = snap->pins,
		.dataset = dataset };
	(void)snprintf(out->name, sizeof out->name, "%s", snap->name);
	return 0;
}

/* Whether the storage has it, when a command ended without telling. 1, 0, or an error. */
struct look {
	const char *name;
	bool found;
};

static int
look_entry(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	struct look *l = arg;

	(void)err;
	if (e->snap && strcmp(e->snap, l->name) == 0)
		l->found = true;
	return 0;
}

static int
exists(struct sb_host *h, const struct sb_hsess *s, const char *name)
{
	struct look l = { .name = name };
	int r = h->st->ops->list(h->st, s->id, look_entry, &l, NULL);

	return r < 0 ? r : l.found;
}

/* Errors that say for sure that nothing was done. */
static bool
definite(int r)
{
	return r == SB_E_SNAPSHOT_EXISTS || r == SB_E_SNAPSHOT_NOT_FOUND ||
		r == SB_E_SNAPSHOT_HELD || r == SB_E_SNAPSHOT_IN_USE || r == SB_E_INVAL ||
		r == SB_E_DENIED || r == SB_E_NOSPACE || r == SB_E_POOL_FULL ||
		r == SB_E_UNSUPPORTED || r == SB_E_STORAGE_BUSY;
}

/* Makes the name free and notes the intent. With the slot held; `snap` is the list's afterwards. */
static int
intend(struct sb_host *h, struct sb_hsess *s, struct sb_snap **snap, struct sb_error *err)
{
	struct sb_snap *old;
	int r = 0;

	(void)pthread_mutex_lock(&s->mu);
	old = sb_hsess_snap_find(s, (*snap)->name);
	if (old && old->intent == SB_INTENT_NONE)
		r = sb_fail(err, SB_E_SNAPSHOT_EXISTS, "%s: %s", sb_code_text(SB_E_SNAPSHOT_EXISTS),
			old->name);
	(void)pthread_mutex_unlock(&s->mu);
	if (r == 0 && old)
		r = sb_hostimpl_purge(h, s, err);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&s->mu);
	r = sb_hostdb_snap_put(h->db, s, *snap, err);
	if (r == 0) {
		r = sb_hsess_snap_add(s, *snap, err);
		if (r == 0)
			(void)sb_steal(snap);
		else
			(void)sb_hostdb_snap_delete(h->db, s->uid, (*snap)->name, NULL);
	}
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

/* The storage made it: visible from now on. */
static int
confirm(struct sb_host *h, struct sb_hsess *s, struct sb_snap *snap, struct sb_host_snapshot *out,
	struct sb_error *err)
{
	uint64_t turn = s->turn;
	int r;

	(void)pthread_mutex_lock(&s->mu);
	snap->intent = SB_INTENT_NONE;
	if (snap->kind == SB_HOST_SNAP_TURN)
		s->turn = snap->turn;
	r = sb_hostdb_snap_put(h->db, s, snap, err);
	if (r == 0 && out)
		r = describe(h, s, snap, out, err);
	if (r < 0) {
		snap->intent = SB_INTENT_REMOVE;
		s->turn = turn;
		s->purge = true;
	} else {
		sb_event_note(h->events, "snapshot.created", s->id, snap->name, s->state);
	}
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

int
sb_hostimpl_snapshot(struct sb_host *h, struct sb_hsess *s, const char *name,
	enum sb_host_snap_kind kind, uint64_t turn, struct sb_host_snapshot *out,
	struct sb_error *err)
{
	sb_auto(sb_snap) struct sb_snap *mine = sb_snap_new(name, kind, err);
	struct sb_snap *snap = mine;
	int r;

	if (!mine)
		return SB_E_NOMEM;
	mine->intent = SB_INTENT_MAKE;
	mine->turn = turn;
	mine->created_ns = sb_hostimpl_now_ns();
	r = intend(h, s, &mine, err);
	if (r < 0)
		return r;
	r = h->st->ops->snapshot(h->st, s->id, name, err);
	if (r < 0 && !definite(r) && exists(h, s, name) == 1)
		r = 0;
	if (r == 0)
		r = confirm(h, s, snap, out, err);
	else {
		bool sure = definite(r) || exists(h, s, name) == 0;

		(void)pthread_mutex_lock(&s->mu);
		if (sure && sb_hostdb_snap_delete(h->db, s->uid, name, NULL) == 0)
			sb_hsess_snap_drop(s, snap);
		else {
			snap->intent = SB_INTENT_REMOVE;
			s->purge = true;
		}
		(void)pthread_mutex_unlock(&s->mu);
	}
	if (r < 0)
		return r;
	atomic_fetch_add(&h->snapshots, 1);
	return 0;
}

/* The first of the list with that intent, with the slot held. */
static struct sb_snap *
first_removed(struct sb_hsess *s)
{
	struct sb_snap *found = NULL;

	(void)pthread_mutex_lock(&s->mu);
	for (size_t i = 0; i < s->n_snaps && !found; i++)
		if (s->snaps[i]->intent == SB_INTENT_REMOVE)
			found = s->snaps[i];
	if (!found)
		s->purge = false;
	(void)pthread_mutex_unlock(&s->mu);
	return found;
}

int
sb_hostimpl_purge(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	struct sb_snap *snap;

	while ((snap = first_removed(s))) {
		struct sb_error why = { 0 };
		int r = h->st->ops->snapshot_delete(h->st, s->id, snap->name, &why);

		if (r == SB_E_SNAPSHOT_NOT_FOUND)
			r = 0;
		(void)pthread_mutex_lock(&s->mu);
		if (r == 0)
			r = sb_hostdb_snap_delete(h->db, s->uid, snap->name, &why);
		if (r == 0) {
			atomic_fetch_add(&h->snapshots_deleted, 1);
			sb_event_note(h->events, "snapshot.deleted", s->id, snap->name, s->state);
			sb_hsess_snap_drop(s, snap);
		} else if (r == SB_E_SNAPSHOT_IN_USE || r == SB_E_SNAPSHOT_HELD) {
			/* Somebody outside needs it: it stays and is seen again. */
			snap->intent = SB_INTENT_NONE;
			(void)sb_hostdb_snap_put(h->db, s, snap, NULL);
		}
		(void)pthread_mutex_unlock(&s->mu);
		if (r < 0) {
			if (err)
				*err = why;
			return r;
		}
	}
	return 0;
}

/* Marks the snapshot for removal, with the slot held. */
static int
doom(struct sb_host *h, struct sb_hsess *s, struct sb_snap *snap, struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->mu);
	snap->intent = SB_INTENT_REMOVE;
	r = sb_hostdb_snap_put(h->db, s, snap, err);
	if (r < 0)
		snap->intent = SB_INTENT_NONE;
	else
		s->purge = true;
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

void
sb_hostimpl_retain(struct sb_host *h, struct sb_hsess *s, enum sb_host_snap_kind kind)
{
	const unsigned limits[SB_HOST_SNAP_KINDS] = { [SB_HOST_SNAP_TURN] = h->o.keep_turn,
		[SB_HOST_SNAP_NAMED] = h->o.keep_named,
		[SB_HOST_SNAP_TOOL] = h->o.keep_tool };
	unsigned have = 0;
	bool any = false;

	if (limits[kind] == 0)
		return;
	for (size_t i = s->n_snaps; i-- > 0;) {
		struct sb_snap *snap = s->snaps[i];
		bool over, free_to_go;

		(void)pthread_mutex_lock(&s->mu);
		over = snap->kind == kind && snap->intent == SB_INTENT_NONE &&
			++have > limits[kind];
		free_to_go = over && snap->pins == 0 && sb_snap_holds(snap) == 0;
		(void)pthread_mutex_unlock(&s->mu);
		if (free_to_go && sb_hostimpl_forks(h, s->uid, snap->name) == 0 &&
			doom(h, s, snap, NULL) == 0)
			any = true;
	}
	if (!any)
		return;
	(void)pthread_mutex_lock(&h->mu);
	any = h->worker_on && !h->closing;
	(void)pthread_mutex_unlock(&h->mu);
	if (any)
		sb_hostimpl_poke(h);
	else
		(void)sb_hostimpl_purge(h, s, NULL);
}

int
sb_host_snapshot_create(struct sb_host *h, const char *id, const char *name,
	const struct sb_host_call *call, struct sb_host_snapshot *out, struct sb_error *err)
{
	struct sb_hsess *s;
	int r = check_name(h, name, err);

	if (r < 0)
		return r;
	r = sb_hostimpl_op_start(h, id, SB_HOST_OP_SNAPSHOT, true, call, &s, err);
	if (r < 0)
		return r;
	r = sb_hostimpl_snapshot(h, s, name, SB_HOST_SNAP_NAMED, s->turn, out, err);
	if (r == 0)
		sb_hostimpl_retain(h, s, SB_HOST_SNAP_NAMED);
	return sb_hostimpl_op_done(h, s, r);
}

/* Tools wait outside while the turn's snapshot is taken. */
static int
close_gate(struct sb_host *h, struct sb_hsess *s, const struct sb_host_call *call,
	struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->mu);
	s->gate = true;
	r = sb_hsess_drain(s, call, sb_deadline_in(h->o.drain_timeout_ms), err);
	if (r == 0)
		r = sb_host_state_admit(SB_HOST_OP_TURN, s->state, s->id, err);
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

static void
open_gate(struct sb_hsess *s)
{
	(void)pthread_mutex_lock(&s->mu);
	s->gate = false;
	(void)pthread_cond_broadcast(&s->cv);
	(void)pthread_mutex_unlock(&s->mu);
}

static int
take_turn(struct sb_host *h, struct sb_hsess *s, struct sb_host_snapshot *out, struct sb_error *err)
{
	unsigned long long turn = s->turn + 1;
	char name[SB_HOST_NAME_MAX + 1];
	int r = 0;

	for (unsigned i = 1; i <= TURN_TRIES; i++) {
		if (i == 1)
			(void)snprintf(name, sizeof name, "%s-%04llu", h->o.snapshot_prefix, turn);
		else
			(void)snprintf(name, sizeof name, "%s-%04llu-%u", h->o.snapshot_prefix,
				turn, i);
		r = sb_hostimpl_snapshot(h, s, name, SB_HOST_SNAP_TURN, turn, out, err);
		if (r != SB_E_SNAPSHOT_EXISTS)
			break;
	}
	return r < 0 ? sb_wrap(err, r, "snapshot turn %llu", turn) : 0;
}

int
sb_host_turn_complete(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_host_snapshot *out, struct sb_error *err)
{
	struct sb_hsess *s;
	int r = sb_hostimpl_op_start(h, id, SB_HOST_OP_TURN, true, call, &s, err);

	if (r < 0)
		return r;
	/* A storage without snapshots has turns, but nothing to show for them. */
	if (!h->st->ops->snapshots) {
		*out = (struct sb_host_snapshot){ .kind = SB_HOST_SNAP_TURN };
		return sb_hostimpl_op_done(h, s, 0);
	}
	r = close_gate(h, s, call, err);
	if (r == 0)
		r = take_turn(h, s, out, err);
	open_gate(s);
	if (r == 0) {
		atomic_fetch_add(&h->turns, 1);
		sb_hostimpl_retain(h, s, SB_HOST_SNAP_TURN);
	}
	return sb_hostimpl_op_done(h, s, r);
}

struct listing {
	struct sb_host_snapshot *v;
	size_t n;
};

static int
add_sizes(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	struct listing *l = arg;

	(void)err;
	for (size_t i = 0; e->snap && i < l->n; i++)
		if (strcmp(l->v[i].name, e->snap) == 0) {
			l->v[i].used = e->used;
			l->v[i].referenced = e->referenced;
		}
	return 0;
}

int
sb_host_snapshot_list(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_host_snapshot **out, size_t *out_n, struct sb_error *err)
{
	struct listing l = { 0 };
	struct sb_hsess *s;
	int r = sb_hostimpl_op_start(h, id, SB_HOST_OP_READ, false, call, &s, err);

	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&s->mu);
	l.v = calloc(s->n_snaps + 1, sizeof *l.v);
	if (!l.v)
		r = sb_fail(err, SB_E_NOMEM, "list of snapshots");
	for (size_t i = 0; r == 0 && i < s->n_snaps; i++)
		if (s->snaps[i]->intent == SB_INTENT_NONE) {
			r = describe(h, s, s->snaps[i], &l.v[l.n], err);
			l.n += r == 0;
		}
	(void)pthread_mutex_unlock(&s->mu);
	for (size_t i = 0; r == 0 && i < l.n; i++)
		l.v[i].forks += sb_hostimpl_forks(h, s->uid, l.v[i].name);
	if (r == 0 && l.n > 0)
		r = h->st->ops->list(h->st, id, add_sizes, &l, err);
	if (r < 0) {
		sb_host_snapshots_free(l.v, l.n);
		return sb_hostimpl_op_done(h, s, r);
	}
	*out = l.v;
	*out_n = l.n;
	return sb_hostimpl_op_done(h, s, 0);
}

static int
delete_one(struct sb_host *h, struct sb_hsess *s, const char *name, struct sb_error *err)
{
	struct sb_snap *snap = sb_hostimpl_visible(s, name, err);
	unsigned holds, pins;
	int r;

	if (!snap)
		return SB_E_SNAPSHOT_NOT_FOUND;
	(void)pthread_mutex_lock(&s->mu);
	holds = sb_snap_holds(snap);
	pins = snap->pins;
	(void)pthread_mutex_unlock(&s->mu);
	if (holds > 0)
		return sb_fail(err, SB_E_SNAPSHOT_HELD, "%s: %s", sb_code_text(SB_E_SNAPSHOT_HELD),
			name);
	if (pins > 0 || sb_hostimpl_forks(h, s->uid, name) > 0)
		return sb_fail(err, SB_E_SNAPSHOT_IN_USE, "%s: %s",
			sb_code_text(SB_E_SNAPSHOT_IN_USE), name);
	r = doom(h, s, snap, err);
	return r < 0 ? r : sb_hostimpl_purge(h, s, err);
}

int
sb_host_snapshot_delete(struct sb_host *h, const char *id, const char *name,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_hsess *s;
	int r = sb_idcheck_snapshot(name, err);

	if (r == 0)
		r = sb_hostimpl_op_start(h, id, SB_HOST_OP_SNAPSHOT, true, call, &s, err);
	return r < 0 ? r : sb_hostimpl_op_done(h, s, delete_one(h, s, name, err));
}
