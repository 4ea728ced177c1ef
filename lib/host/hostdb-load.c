/* SPDX-License-Identifier: MIT */
/* Reads sessions, snapshots, holds and processes back from the database. */
#include "config.h"

#include <host/hostdb-priv.h>

#include <string.h>

#include <host/grow.h>

/* A damaged row must not make us allocate without end. */
#define TEXT_MAX 65536

struct load {
	struct sb_hostdb *db;
	struct sb_hsess **v;
	size_t n, cap;
};

static const char *
text(sqlite3_stmt *stmt, int col)
{
	return (const char *)sqlite3_column_text(stmt, col);
}

/* A copy of a text column; NULL stays NULL. */
static int
take(sqlite3_stmt *stmt, int col, char **out, struct sb_error *err)
{
	const char *t = text(stmt, col);

	if (!t)
		return 0;
	if (strnlen(t, TEXT_MAX) == TEXT_MAX)
		return sb_fail(err, SB_E_CORRUPT, "host database: column %s is too long",
			sqlite3_column_name(stmt, col));
	*out = strdup(t);
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "host database");
}

static int
keep(struct load *l, struct sb_hsess *s, struct sb_error *err)
{
	struct sb_hsess **v = sb_grow(l->v, l->n, &l->cap, sizeof(*v));

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "host database: %zu sessions", l->n);
	l->v = v;
	v[l->n++] = s;
	return 0;
}

static int
session_row(sqlite3_stmt *stmt, void *arg, struct sb_error *err)
{
	const char *id = text(stmt, 1);
	const char *state = text(stmt, 2);
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	int r;

	if (!id || strlen(id) > SB_HOST_ID_MAX)
		return sb_fail(err, SB_E_CORRUPT, "host database: a session has a bad id");
	s = sb_hsess_new(id, err);
	if (!s)
		return SB_E_NOMEM;
	if (!state || !sb_host_state_parse(state, &s->state))
		return sb_fail(err, SB_E_CORRUPT, "host database: session %s has an unknown state",
			id);
	s->uid = sqlite3_column_int64(stmt, 0);
	s->resume = sqlite3_column_int64(stmt, 3) != 0;
	s->parent_uid = sqlite3_column_int64(stmt, 6);
	s->turn = (uint64_t)sqlite3_column_int64(stmt, 11);
	s->quota = (uint64_t)sqlite3_column_int64(stmt, 12);
	s->snap_seq = (uint64_t)sqlite3_column_int64(stmt, 13);
	s->proc_seq = (uint64_t)sqlite3_column_int64(stmt, 14);
	s->created_ns = sqlite3_column_int64(stmt, 15);
	s->active_ns = sqlite3_column_int64(stmt, 20);
	s->paused_ns = sqlite3_column_int64(stmt, 22);
	if (!text(stmt, 16) || !sb_host_runtime_from(text(stmt, 16), &s->runtime))
		s->runtime = SB_HOST_RUNTIME_AUTO;
	if (text(stmt, 17) && !sb_host_network_from(text(stmt, 17), &s->network))
		return sb_fail(err, SB_E_CORRUPT,
			"host database: session %s has an unknown network", id);
	if (!text(stmt, 19) || strlen(text(stmt, 19)) != SB_HOST_NONCE_LEN)
		return sb_fail(err, SB_E_CORRUPT, "host database: session %s has a bad nonce", id);
	memcpy(s->nonce, text(stmt, 19), sizeof s->nonce);
	if ((r = take(stmt, 4, &s->mountpoint, err)) < 0 ||
		(r = take(stmt, 5, &s->base, err)) < 0 ||
		(r = take(stmt, 7, &s->parent_id, err)) < 0 ||
		(r = take(stmt, 8, &s->parent_snap, err)) < 0 ||
		(r = take(stmt, 9, &s->why, err)) < 0 ||
		(r = take(stmt, 10, &s->rollback_to, err)) < 0 ||
		(r = take(stmt, 18, &s->policy, err)) < 0 ||
		(r = take(stmt, 21, &s->cold, err)) < 0)
		return r;
	r = keep(arg, s, err);
	if (r == 0)
		(void)sb_steal(&s);
	return r;
}

static int
label_row(sqlite3_stmt *stmt, void *arg, struct sb_error *err)
{
	struct sb_hsess *s = arg;

	return sb_strmap_set(&s->labels, text(stmt, 0), text(stmt, 1), err);
}

static int
snap_row(sqlite3_stmt *stmt, void *arg, struct sb_error *err)
{
	struct sb_hsess *s = arg;
	int64_t kind = sqlite3_column_int64(stmt, 1);
	int64_t intent = sqlite3_column_int64(stmt, 2);
	sb_auto(sb_snap) struct sb_snap *snap = NULL;
	int r;

	if (kind < 0 || kind >= SB_HOST_SNAP_KINDS || intent < 0 || intent > SB_INTENT_REMOVE)
		return sb_fail(err, SB_E_CORRUPT, "host database: session %s has a bad snapshot",
			s->id);
	snap = sb_snap_new(text(stmt, 0), (enum sb_host_snap_kind)kind, err);
	if (!snap)
		return SB_E_NOMEM;
	snap->intent = (enum sb_intent)intent;
	snap->turn = (uint64_t)sqlite3_column_int64(stmt, 3);
	snap->created_ns = sqlite3_column_int64(stmt, 4);
	r = sb_hsess_snap_add(s, snap, err);
	if (r == 0)
		(void)sb_steal(&snap);
	return r;
}

static int
hold_row(sqlite3_stmt *stmt, void *arg, struct sb_error *err)
{
	struct sb_hsess *s = arg;
	struct sb_snap *snap = sb_hsess_snap_find(s, text(stmt, 0));
	int64_t intent = sqlite3_column_int64(stmt, 2);

	if (!snap || intent < 0 || intent > SB_INTENT_REMOVE)
		return sb_fail(err, SB_E_CORRUPT, "host database: session %s has a bad hold",
			s->id);
	return sb_snap_hold_add(snap, text(stmt, 1), (enum sb_intent)intent, err);
}

static int
load_parts(struct sb_hostdb *db, struct sb_hsess *s, struct sb_error *err)
{
	int r = sb_hostdb_query(db, "SELECT key, value FROM labels WHERE uid = ? ORDER BY key",
		label_row, s, s->uid, err);

	if (r == 0)
		r = sb_hostdb_query(db,
			"SELECT name, kind, intent, turn, created_ns FROM snapshots WHERE uid = ? "
			"ORDER BY seq",
			snap_row, s, s->uid, err);
	if (r == 0)
		r = sb_hostdb_query(db, "SELECT name, tag, intent FROM holds WHERE uid = ?",
			hold_row, s, s->uid, err);
	return r;
}

int
sb_hostdb_load(struct sb_hostdb *db, sb_hostdb_session_fn fn, void *arg, struct sb_error *err)
{
	struct load l = { .db = db };
	int r = sb_hostdb_query(db,
		"SELECT uid, id, state, resume, mountpoint, base, parent_uid, parent_id, "
		"parent_snap, why,"
		" rollback_to, turn, quota, snap_seq, proc_seq, created_ns, runtime, network, "
		"policy, nonce, active_ns, cold, paused_ns FROM sessions WHERE uid > ? "
		"ORDER BY uid",
		session_row, &l, 0, err);

	for (size_t i = 0; i < l.n; i++) {
		if (r == 0)
			r = load_parts(db, l.v[i], err);
		if (r == 0)
			r = fn(l.v[i], arg, err);
		else
			sb_hsess_unref(l.v[i]);
	}
	free(l.v);
	return r;
}

struct proc_load {
	sb_hostdb_proc_fn fn;
	void *arg;
};

static int
proc_row(sqlite3_stmt *stmt, void *arg, struct sb_error *err)
{
	struct proc_load *l = arg;
	struct sb_hostdb_proc row = {
		.id = text(stmt, 0),
		.seq = (uint64_t)sqlite3_column_int64(stmt, 1),
		.binary = text(stmt, 2),
		.address = text(stmt, 3),
		.status = sqlite3_column_int(stmt, 4),
		.has_exit = sqlite3_column_int(stmt, 5) != 0,
		.exit_code = sqlite3_column_int(stmt, 6),
		.pid = sqlite3_column_int64(stmt, 7),
		.start_ticks = sqlite3_column_int64(stmt, 8),
		.boot_id = text(stmt, 9),
		.started_ns = sqlite3_column_int64(stmt, 10),
		.ended_ns = sqlite3_column_int64(stmt, 11),
		.port = (unsigned)sqlite3_column_int(stmt, 12) & 0xffff,
	};

	return l->fn(&row, l->arg, err);
}

int
sb_hostdb_proc_load(struct sb_hostdb *db, int64_t uid, sb_hostdb_proc_fn fn, void *arg,
	struct sb_error *err)
{
	struct proc_load l = { fn, arg };

	return sb_hostdb_query(db,
		"SELECT id, seq, binary, address, status, has_exit, exit_code, pid, start_ticks, "
		"boot_id,"
		" started_ns, ended_ns, port FROM processes WHERE uid = ? ORDER BY seq",
		proc_row, &l, uid, err);
}
