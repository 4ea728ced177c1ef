/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/health.h>
#include <host/host-snapshot.h>

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/str.h>
#include <host/host-live.h>
#include <host/host-map.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/retention.h>
#include <host/storage/idcheck.h>

/* Names of the storage's own that pass by. */
#define ZFS_DIFF_PREFIX "zfs-diff-"

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

const char *
sb_host_snap_kind_name(enum sb_host_snap_kind k)
{
	static const char *const names[SB_HOST_SNAP_KINDS] = { "turn", "named", "tool", "fork",
		"cold" };

	return (unsigned)k < SB_HOST_SNAP_KINDS ? names[k] : "unknown";
}

enum sb_host_snap_kind
sb_host_snapshot_kind_of(const struct sb_host *h, const char *name, uint64_t *turn)
{
	if (turn_name(h, name, turn))
		return SB_HOST_SNAP_TURN;
	if (sb_str_starts(name, "tool-"))
		return SB_HOST_SNAP_TOOL;
	if (sb_str_starts(name, "cold-") && name[5] && !name[5 + strspn(name + 5, "0123456789")])
		return SB_HOST_SNAP_COLD;
	return sb_str_starts(name, "fork-") ? SB_HOST_SNAP_FORK : SB_HOST_SNAP_NAMED;
}

int
sb_host_snapshot_need(const struct sb_host *h, struct sb_error *err)
{
	return h->st->ops->snapshots ?
		0 :
		sb_fail(err, SB_E_NO_SNAPSHOTS, "%s", sb_code_text(SB_E_NO_SNAPSHOTS));
}

struct sb_snap *
sb_host_snapshot_visible(struct sb_hsess *s, const char *name, struct sb_error *err)
{
	struct sb_snap *snap;

	(void)pthread_mutex_lock(&s->mu);
	snap = sb_hsess_snap_find(s, name);
	if (!snap || snap->intent != SB_INTENT_NONE) {
		(void)sb_fail(err, SB_E_SNAPSHOT_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SNAPSHOT_NOT_FOUND), name);
		snap = NULL;
	}
	(void)pthread_mutex_unlock(&s->mu);
	return snap;
}

static int
check_name(const struct sb_host *h, const char *name, struct sb_error *err)
{
	uint64_t turn;
	int r = sb_idcheck_snapshot(name, err);

	if (r < 0)
		return r;
	if (sb_host_snapshot_kind_of(h, name, &turn) != SB_HOST_SNAP_NAMED ||
		sb_str_starts(name, ZFS_DIFF_PREFIX))
		return sb_fail(err, SB_E_INVAL,
			"snapshot name \"%.80s\" is reserved (%s-NNNN, cold-N, tool-..., fork-... "
			"are made by the host)",
			name, h->o.snapshot_prefix);
	return 0;
}

int
sb_host_snapshot_describe(struct sb_host *h, const struct sb_hsess *s, const struct sb_snap *snap,
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
		r = sb_host_retention_purge(h, s, err);
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
		r = sb_host_snapshot_describe(h, s, snap, out, err);
	if (r < 0) {
		snap->intent = SB_INTENT_REMOVE;
		s->turn = turn;
		s->purge = true;
	} else {
		sb_host_event_note(h->events, "snapshot.created", s->id, snap->name, s->state);
	}
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

/*
 * A storage that knows nothing of what runs in the session: that stands still meanwhile, with what
 * it wrote in the file system's hands.
 */
static int
store_still(struct sb_host *h, struct sb_hsess *s, const char *name, struct sb_host_live *live,
	struct sb_error *err)
{
	struct sb_error why = { 0 };
	sb_autoclose int dir = -1;
	int r = live->ops.freeze(live->ops.arg, true, err);

	if (r == 0 && s->mountpoint)
		dir = open(s->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		(void)syncfs(dir);
	/* Nothing of ours is open in there when the storage comes. */
	if (dir >= 0)
		(void)close(sb_steal_fd(&dir));
	if (r == 0)
		r = h->st->ops->snapshot(h->st, s->id, name, err);
	if (live->ops.freeze(live->ops.arg, false, &why) < 0 && r == 0)
		r = sb_fail(err, why.code, "%s", why.msg);
	return r;
}

/* The storage's part of it. */
static int
store(struct sb_host *h, struct sb_hsess *s, const char *name, struct sb_storage_taken *taken,
	struct sb_error *err)
{
	struct sb_host_live live;
	int r;

	sb_host_live_begin(h, s, &live);
	r = h->st->ops->snapshot_live ?
		h->st->ops->snapshot_live(h->st, s->id, name, &live.ops, taken, err) :
		store_still(h, s, name, &live, err);
	sb_host_live_end(&live);
	return r;
}

int
sb_host_snapshot_take(struct sb_host *h, struct sb_hsess *s, const char *name,
	enum sb_host_snap_kind kind, uint64_t turn, struct sb_host_snapshot *out,
	struct sb_error *err)
{
	sb_auto(sb_snap) struct sb_snap *mine = sb_snap_new(name, kind, err);
	struct sb_storage_taken taken = { 0 };
	struct sb_snap *snap = mine;
	int r;

	if (!mine)
		return SB_E_NOMEM;
	r = sb_host_health_admit(h, err);
	if (r < 0)
		return r;
	mine->intent = SB_INTENT_MAKE;
	mine->turn = turn;
	mine->created_ns = sb_host_now_ns();
	r = intend(h, s, &mine, err);
	if (r < 0)
		return r;
	r = store(h, s, name, &taken, err);
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
	if (out) {
		out->live = taken.live;
		out->unchanged = taken.empty;
	}
	atomic_fetch_add(&h->snapshots, 1);
	return 0;
}

int
sb_host_snapshot_create(struct sb_host *h, const char *id, const char *name,
	const struct sb_host_call *call, struct sb_host_snapshot *out, struct sb_error *err)
{
	struct sb_hsess *s;
	int r = check_name(h, name, err);

	if (r < 0)
		return r;
	r = sb_host_op_start(h, id, SB_HOST_OP_SNAPSHOT, true, call, &s, err);
	if (r < 0)
		return r;
	r = sb_host_snapshot_take(h, s, name, SB_HOST_SNAP_NAMED, s->turn, out, err);
	if (r == 0)
		sb_host_retention_apply(h, s, SB_HOST_SNAP_NAMED);
	return sb_host_op_done(h, s, r);
}

struct listing {
	struct sb_host_snapshot *v;
	size_t n;
	char head[SB_HOST_NAME_MAX + 1];
};

static int
add_sizes(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	struct listing *l = arg;

	(void)err;
	if (!e->snap && e->parent)
		(void)snprintf(l->head, sizeof l->head, "%s", e->parent);
	for (size_t i = 0; e->snap && i < l->n; i++)
		if (strcmp(l->v[i].name, e->snap) == 0) {
			l->v[i].used = e->used;
			l->v[i].referenced = e->referenced;
			if (e->parent)
				(void)snprintf(l->v[i].parent, sizeof l->v[i].parent, "%s",
					e->parent);
		}
	return 0;
}

/* A storage that can only drop what is newer than the target has one line of them. */
static void
add_line(struct listing *l)
{
	for (size_t i = 1; i < l->n; i++)
		(void)snprintf(l->v[i].parent, sizeof l->v[i].parent, "%s", l->v[i - 1].name);
	if (l->n > 0)
		(void)snprintf(l->head, sizeof l->head, "%s", l->v[l->n - 1].name);
}

int
sb_host_snapshot_list(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_host_snapshot **out, size_t *out_n, struct sb_error *err)
{
	struct listing l = { 0 };
	struct sb_hsess *s;
	int r = sb_host_op_start(h, id, SB_HOST_OP_READ, false, call, &s, err);

	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&s->mu);
	l.v = calloc(s->n_snaps + 1, sizeof *l.v);
	if (!l.v)
		r = sb_fail(err, SB_E_NOMEM, "list of snapshots");
	for (size_t i = 0; r == 0 && i < s->n_snaps; i++)
		if (s->snaps[i]->intent == SB_INTENT_NONE) {
			r = sb_host_snapshot_describe(h, s, s->snaps[i], &l.v[l.n], err);
			l.n += r == 0;
		}
	(void)pthread_mutex_unlock(&s->mu);
	for (size_t i = 0; r == 0 && i < l.n; i++)
		l.v[i].forks += sb_host_map_forks(h, s->uid, l.v[i].name);
	if (r == 0 && l.n > 0)
		r = h->st->ops->list(h->st, id, add_sizes, &l, err);
	if (!h->st->ops->rollback_live)
		add_line(&l);
	for (size_t i = 0; i < l.n; i++)
		l.v[i].current = strcmp(l.v[i].name, l.head) == 0;
	if (r < 0) {
		sb_host_snapshots_free(l.v, l.n);
		return sb_host_op_done(h, s, r);
	}
	*out = l.v;
	*out_n = l.n;
	return sb_host_op_done(h, s, 0);
}

static int
delete_one(struct sb_host *h, struct sb_hsess *s, const char *name, struct sb_error *err)
{
	struct sb_snap *snap = sb_host_snapshot_visible(s, name, err);
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
	if (pins > 0 || sb_host_map_forks(h, s->uid, name) > 0)
		return sb_fail(err, SB_E_SNAPSHOT_IN_USE, "%s: %s",
			sb_code_text(SB_E_SNAPSHOT_IN_USE), name);
	r = sb_host_retention_mark(h, s, snap, err);
	return r < 0 ? r : sb_host_retention_purge(h, s, err);
}

int
sb_host_snapshot_delete(struct sb_host *h, const char *id, const char *name,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_hsess *s;
	int r = sb_idcheck_snapshot(name, err);

	if (r == 0)
		r = sb_host_op_start(h, id, SB_HOST_OP_SNAPSHOT, true, call, &s, err);
	return r < 0 ? r : sb_host_op_done(h, s, delete_one(h, s, name, err));
}

int
sb_host_snapshot_pin(struct sb_host *h, struct sb_hsess *s, const char *name,
	char out[SB_HOST_NAME_MAX + 1], uint64_t *turn, struct sb_error *err)
{
	struct sb_snap *snap;
	int r;

	if (!name || !*name) {
		(void)pthread_mutex_lock(&s->mu);
		(void)snprintf(out, SB_HOST_NAME_MAX + 1, "fork-%llu",
			(unsigned long long)++s->snap_seq);
		(void)pthread_mutex_unlock(&s->mu);
		r = sb_host_snapshot_take(h, s, out, SB_HOST_SNAP_FORK, s->turn, NULL, err);
		if (r < 0)
			return sb_wrap(err, r, "snapshot to fork");
	} else {
		(void)snprintf(out, SB_HOST_NAME_MAX + 1, "%s", name);
	}
	snap = sb_host_snapshot_visible(s, out, err);
	if (!snap)
		return SB_E_SNAPSHOT_NOT_FOUND;
	(void)pthread_mutex_lock(&s->mu);
	snap->pins++;
	*turn = snap->turn;
	(void)pthread_mutex_unlock(&s->mu);
	return 0;
}

void
sb_host_snapshot_unpin(struct sb_hsess *s, const char *name)
{
	struct sb_snap *snap;

	(void)pthread_mutex_lock(&s->mu);
	snap = sb_hsess_snap_find(s, name);
	if (snap)
		snap->pins--;
	(void)pthread_mutex_unlock(&s->mu);
}

void
sb_host_snapshot_clear(struct sb_host_snapshot *s)
{
	if (!s)
		return;
	free(s->dataset);
	*s = (struct sb_host_snapshot){ 0 };
}

void
sb_host_snapshots_free(struct sb_host_snapshot *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sb_host_snapshot_clear(&v[i]);
	free(v);
}
