/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/hostdb-priv.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/strlist.h>

#define SCHEMA_VERSION 7
#define SET_VERSION "PRAGMA user_version=7"
#define BUSY_MS 5000
#define STMT_CACHE 64
#define DAY_NS (INT64_C(86400) * 1000000000)
#define FENCE_DAYS 30

/* Statements are cached by the address of their text, so every text is one static string. */
struct sb_hostdb {
	pthread_mutex_t mu;
	sqlite3 *sql;
	bool full; /* the synchronous setting now in force */
	struct {
		const char *text;
		sqlite3_stmt *stmt;
	} cache[STMT_CACHE];
	size_t n_cache;
};

static const char schema[] =
	"CREATE TABLE sessions("
	" uid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, state TEXT NOT NULL,"
	" resume INTEGER NOT NULL DEFAULT 0, mountpoint TEXT, base TEXT,"
	" parent_uid INTEGER NOT NULL DEFAULT 0, parent_id TEXT, parent_snap TEXT,"
	" why TEXT, rollback_to TEXT, turn INTEGER NOT NULL DEFAULT 0,"
	" quota INTEGER NOT NULL DEFAULT 0, snap_seq INTEGER NOT NULL DEFAULT 0,"
	" proc_seq INTEGER NOT NULL DEFAULT 0, created_ns INTEGER NOT NULL) STRICT;"
	"CREATE TABLE labels("
	" uid INTEGER NOT NULL REFERENCES sessions(uid) ON DELETE CASCADE,"
	" key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(uid, key)) STRICT;"
	"CREATE TABLE snapshots("
	" seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	" uid INTEGER NOT NULL REFERENCES sessions(uid) ON DELETE CASCADE,"
	" name TEXT NOT NULL, kind INTEGER NOT NULL, intent INTEGER NOT NULL, turn INTEGER NOT "
	"NULL,"
	" created_ns INTEGER NOT NULL, UNIQUE(uid, name)) STRICT;"
	"CREATE TABLE holds("
	" uid INTEGER NOT NULL, name TEXT NOT NULL, tag TEXT NOT NULL, intent INTEGER NOT NULL,"
	" PRIMARY KEY(uid, name, tag),"
	" FOREIGN KEY(uid, name) REFERENCES snapshots(uid, name) ON DELETE CASCADE) STRICT;"
	"CREATE TABLE processes("
	" uid INTEGER NOT NULL REFERENCES sessions(uid) ON DELETE CASCADE,"
	" id TEXT NOT NULL, seq INTEGER NOT NULL, binary TEXT NOT NULL, address TEXT,"
	" status INTEGER NOT NULL, has_exit INTEGER NOT NULL, exit_code INTEGER NOT NULL,"
	" pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL, boot_id TEXT,"
	" started_ns INTEGER NOT NULL, ended_ns INTEGER NOT NULL, PRIMARY KEY(uid, id)) STRICT;";

/* What each version added to the one before it; the schema above is version 1. */
static const char *const steps[SCHEMA_VERSION + 1] = {
	[1] = schema,
	[2] = "ALTER TABLE processes ADD COLUMN port INTEGER NOT NULL DEFAULT 0;",
	[3] = "ALTER TABLE sessions ADD COLUMN runtime TEXT; ALTER TABLE sessions ADD COLUMN "
	      "network TEXT;",
	[4] = "ALTER TABLE sessions ADD COLUMN policy TEXT;",
	[5] = "ALTER TABLE sessions ADD COLUMN nonce TEXT;"
	      "UPDATE sessions SET nonce = lower(hex(randomblob(16)));",
	[6] = "ALTER TABLE sessions ADD COLUMN active_ns INTEGER NOT NULL DEFAULT 0;"
	      "UPDATE sessions SET active_ns = created_ns;"
	      "CREATE TABLE fences(id TEXT PRIMARY KEY, token INTEGER NOT NULL,"
	      " seen_ns INTEGER NOT NULL) STRICT;",
	[7] = "ALTER TABLE sessions ADD COLUMN cold TEXT;"
	      "ALTER TABLE sessions ADD COLUMN paused_ns INTEGER NOT NULL DEFAULT 0;",
};

static int
db_fail(struct sb_hostdb *db, const char *what, struct sb_error *err)
{
	int code;

	switch (sqlite3_errcode(db->sql)) {
	case SQLITE_NOMEM: code = SB_E_NOMEM; break;
	case SQLITE_FULL: code = SB_E_NOSPACE; break;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB: code = SB_E_CORRUPT; break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED: code = SB_E_LOCKED; break;
	case SQLITE_READONLY:
	case SQLITE_PERM: code = SB_E_DENIED; break;
	default: code = SB_E_SYS; break;
	}
	return sb_fail(err, code, "host database: %s: %s", what, sqlite3_errmsg(db->sql));
}

static int
exec(struct sb_hostdb *db, const char *text, struct sb_error *err)
{
	if (sqlite3_exec(db->sql, text, NULL, NULL, NULL) != SQLITE_OK)
		return db_fail(db, "exec", err);
	return 0;
}

/*
 * The cached statement of `text`, bound by `fmt`: i int64_t, s string (NULL allowed). NULL: failed.
 */
static sqlite3_stmt *
prepare(struct sb_hostdb *db, const char *text, struct sb_error *err, const char *fmt, va_list ap)
{
	sqlite3_stmt *stmt = NULL;
	int r = SQLITE_OK;

	for (size_t i = 0; i < db->n_cache; i++)
		if (db->cache[i].text == text)
			stmt = db->cache[i].stmt;
	if (!stmt) {
		if (db->n_cache == STMT_CACHE) {
			(void)sb_fail(err, SB_E_LIMIT, "host database: statement cache is full");
			return NULL;
		}
		if (sqlite3_prepare_v3(db->sql, text, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) !=
			SQLITE_OK) {
			(void)db_fail(db, text, err);
			return NULL;
		}
		db->cache[db->n_cache].text = text;
		db->cache[db->n_cache++].stmt = stmt;
	}
	for (int i = 1; fmt[i - 1] && r == SQLITE_OK; i++) {
		if (fmt[i - 1] == 'i')
			r = sqlite3_bind_int64(stmt, i, va_arg(ap, int64_t));
		else
			r = sqlite3_bind_text(stmt, i, va_arg(ap, const char *), -1,
				SQLITE_TRANSIENT);
	}
	if (r != SQLITE_OK) {
		(void)db_fail(db, "bind", err);
		return NULL;
	}
	return stmt;
}

/* Runs a statement without rows. SB_E_EXISTS when a unique column is taken. */
static int
run(struct sb_hostdb *db, const char *text, struct sb_error *err, const char *fmt, ...)
{
	sqlite3_stmt *stmt;
	va_list ap;
	int r;

	va_start(ap, fmt);
	stmt = prepare(db, text, err, fmt, ap);
	va_end(ap);
	if (!stmt)
		return err ? err->code : SB_E_SYS;
	r = sqlite3_step(stmt);
	if (r == SQLITE_DONE || r == SQLITE_ROW)
		r = 0;
	else if (sqlite3_extended_errcode(db->sql) == SQLITE_CONSTRAINT_UNIQUE)
		r = sb_fail(err, SB_E_EXISTS, "host database: %s", sqlite3_errmsg(db->sql));
	else
		r = db_fail(db, "step", err);
	(void)sqlite3_reset(stmt);
	return r;
}

static int
query(struct sb_hostdb *db, const char *text, sb_hostdb_row_fn fn, void *arg, struct sb_error *err,
	const char *fmt, ...)
{
	sqlite3_stmt *stmt;
	va_list ap;
	int r = 0;

	va_start(ap, fmt);
	stmt = prepare(db, text, err, fmt, ap);
	va_end(ap);
	if (!stmt)
		return err ? err->code : SB_E_SYS;
	for (;;) {
		int step = sqlite3_step(stmt);

		if (step == SQLITE_DONE)
			break;
		r = step == SQLITE_ROW ? fn(stmt, arg, err) : db_fail(db, "step", err);
		if (r < 0)
			break;
	}
	(void)sqlite3_reset(stmt);
	return r;
}

/* Takes the connection and opens a transaction; `durable` ones are on the disk when they return. */
static int
begin(struct sb_hostdb *db, bool durable, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&db->mu);
	if (durable != db->full) {
		r = exec(db, durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
			err);
		if (r == 0)
			db->full = durable;
	}
	if (r == 0)
		r = run(db, "BEGIN IMMEDIATE", err, "");
	if (r < 0)
		(void)pthread_mutex_unlock(&db->mu);
	return r;
}

/* Ends the transaction of begin(): commits when `r` is 0, else rolls back and hands `r` on. */
static int
end(struct sb_hostdb *db, int r, struct sb_error *err)
{
	if (r >= 0)
		r = run(db, "COMMIT", err, "");
	if (r < 0 && !sqlite3_get_autocommit(db->sql))
		(void)run(db, "ROLLBACK", NULL, "");
	(void)pthread_mutex_unlock(&db->mu);
	return r;
}

static int
one_int(sqlite3_stmt *stmt, void *arg, struct sb_error *err)
{
	(void)err;
	*(int64_t *)arg = sqlite3_column_int64(stmt, 0);
	return 0;
}

static int
migrate(struct sb_hostdb *db, struct sb_error *err)
{
	int64_t version = 0;
	int64_t tables = 0;
	int r = query(db, "PRAGMA user_version", one_int, &version, err, "");

	if (r == 0)
		r = query(db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table'", one_int,
			&tables, err, "");
	if (r < 0)
		return r;
	if (version > SCHEMA_VERSION)
		return sb_fail(err, SB_E_VERSION,
			"host database has schema version %lld, this program knows %d: use a newer "
			"one",
			(long long)version, SCHEMA_VERSION);
	if (version == SCHEMA_VERSION)
		return 0;
	if (version == 0 && tables > 0)
		return sb_fail(err, SB_E_CORRUPT,
			"host database: the file belongs to another program");
	r = begin(db, true, err);
	if (r < 0)
		return r;
	for (int64_t v = version + 1; v <= SCHEMA_VERSION && r == 0; v++)
		r = exec(db, steps[v], err);
	if (r == 0)
		r = exec(db, SET_VERSION, err);
	return end(db, r, err);
}

struct sb_hostdb *
sb_hostdb_open(const char *path, struct sb_error *err)
{
	struct sb_hostdb *db = calloc(1, sizeof *db);
	int r;

	if (!db) {
		(void)sb_fail(err, SB_E_NOMEM, "host database");
		return NULL;
	}
	(void)pthread_mutex_init(&db->mu, NULL);
	r = sqlite3_open_v2(path, &db->sql,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (r != SQLITE_OK || !db->sql) {
		(void)sb_fail(err, r == SQLITE_NOMEM ? SB_E_NOMEM : SB_E_SYS,
			"open host database %s: %s", path,
			db->sql ? sqlite3_errmsg(db->sql) : sqlite3_errstr(r));
		sb_hostdb_close(db);
		return NULL;
	}
	(void)sqlite3_busy_timeout(db->sql, BUSY_MS);
	r = exec(db, "PRAGMA journal_mode=WAL", err);
	if (r == 0)
		r = exec(db,
			"PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; PRAGMA "
			"trusted_schema=OFF",
			err);
	if (r == 0)
		r = migrate(db, err);
	if (r < 0) {
		(void)sb_wrap(err, r, "%s", path);
		sb_hostdb_close(db);
		return NULL;
	}
	return db;
}

void
sb_hostdb_close(struct sb_hostdb *db)
{
	if (!db)
		return;
	for (size_t i = 0; i < db->n_cache; i++)
		(void)sqlite3_finalize(db->cache[i].stmt);
	(void)sqlite3_close(db->sql);
	(void)pthread_mutex_destroy(&db->mu);
	free(db);
}

static int
labels_insert(struct sb_hostdb *db, int64_t uid, const struct sb_strmap *m, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; i < m->n && r == 0; i++)
		r = run(db, "INSERT INTO labels(uid, key, value) VALUES(?, ?, ?)", err, "iss", uid,
			m->v[i].key, m->v[i].value);
	return r;
}

int
sb_hostdb_session_insert(struct sb_hostdb *db, struct sb_hsess *s, struct sb_error *err)
{
	struct sb_error why = { 0 };
	int64_t uid = 0;
	int r = begin(db, false, err);

	if (r < 0)
		return r;
	r = run(db,
		"INSERT INTO sessions(id, state, mountpoint, base, parent_uid, parent_id, "
		"parent_snap, turn,"
		" quota, created_ns, runtime, network, policy, nonce, active_ns, cold) VALUES(?, "
		"?, ?, ?, "
		"?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		&why, "ssssissiiissssis", s->id, sb_host_state_name(s->state), s->mountpoint,
		s->base, s->parent_uid, s->parent_id, s->parent_snap, (int64_t)s->turn,
		(int64_t)s->quota, s->created_ns, sb_host_runtime_name(s->runtime),
		sb_host_network_name(s->network), s->policy, s->nonce, s->active_ns, s->cold);
	if (r == SB_E_EXISTS)
		r = sb_fail(err, SB_E_SESSION_EXISTS, "%s: %s", sb_code_text(SB_E_SESSION_EXISTS),
			s->id);
	else if (r < 0 && err)
		*err = why;
	if (r == 0) {
		uid = sqlite3_last_insert_rowid(db->sql);
		r = labels_insert(db, uid, &s->labels, err);
	}
	r = end(db, r, err);
	if (r == 0)
		s->uid = uid;
	return r;
}

static int
session_update(struct sb_hostdb *db, const struct sb_hsess *s, enum sb_host_state state,
	struct sb_error *err)
{
	return run(db,
		"UPDATE sessions SET state = ?, resume = ?, mountpoint = ?, why = ?, rollback_to = "
		"?, turn = ?,"
		" quota = ?, snap_seq = ?, proc_seq = ?, active_ns = ?, cold = ?, paused_ns = ? "
		"WHERE uid = ?",
		err, "sisssiiiiisii", sb_host_state_name(state), (int64_t)s->resume, s->mountpoint,
		s->why, s->rollback_to, (int64_t)s->turn, (int64_t)s->quota, (int64_t)s->snap_seq,
		(int64_t)s->proc_seq, s->active_ns, s->cold, s->paused_ns, s->uid);
}

int
sb_hostdb_session_update(struct sb_hostdb *db, const struct sb_hsess *s, enum sb_host_state state,
	bool durable, struct sb_error *err)
{
	int r = begin(db, durable, err);

	return r < 0 ? r : end(db, session_update(db, s, state, err), err);
}

int
sb_hostdb_fence(struct sb_hostdb *db, const char *id, int64_t token, int64_t now_ns, int64_t *seen,
	struct sb_error *err)
{
	int r;

	/* Most calls bring the number that is known: they only look. */
	*seen = 0;
	(void)pthread_mutex_lock(&db->mu);
	r = query(db, "SELECT token FROM fences WHERE id = ?", one_int, seen, err, "s", id);
	(void)pthread_mutex_unlock(&db->mu);
	if (r < 0 || *seen >= token)
		return r;
	r = begin(db, true, err);
	if (r < 0)
		return r;
	r = run(db, "DELETE FROM fences WHERE seen_ns < ? AND id NOT IN (SELECT id FROM sessions)",
		err, "i", now_ns - FENCE_DAYS * DAY_NS);
	if (r == 0)
		r = run(db,
			"INSERT INTO fences(id, token, seen_ns) VALUES(?, ?, ?) ON CONFLICT(id) DO "
			"UPDATE SET token = max(token, excluded.token), seen_ns = excluded.seen_ns",
			err, "sii", id, token, now_ns);
	if (r == 0)
		r = query(db, "SELECT token FROM fences WHERE id = ?", one_int, seen, err, "s", id);
	return end(db, r, err);
}

int
sb_hostdb_session_delete(struct sb_hostdb *db, int64_t uid, struct sb_error *err)
{
	int r = begin(db, true, err);

	return r < 0 ? r :
		       end(db, run(db, "DELETE FROM sessions WHERE uid = ?", err, "i", uid), err);
}

int
sb_hostdb_labels_set(struct sb_hostdb *db, int64_t uid, const struct sb_strmap *labels,
	struct sb_error *err)
{
	int r = begin(db, true, err);

	if (r < 0)
		return r;
	r = run(db, "DELETE FROM labels WHERE uid = ?", err, "i", uid);
	if (r == 0)
		r = labels_insert(db, uid, labels, err);
	return end(db, r, err);
}

int
sb_hostdb_policy_set(struct sb_hostdb *db, int64_t uid, const char *policy, struct sb_error *err)
{
	int r = begin(db, true, err);

	if (r < 0)
		return r;
	r = run(db, "UPDATE sessions SET policy = ? WHERE uid = ?", err, "si", policy, uid);
	return end(db, r, err);
}

int
sb_hostdb_snap_put(struct sb_hostdb *db, const struct sb_hsess *s, const struct sb_snap *snap,
	struct sb_error *err)
{
	int r = begin(db, false, err);

	if (r < 0)
		return r;
	r = run(db,
		"INSERT INTO snapshots(uid, name, kind, intent, turn, created_ns) VALUES(?, ?, ?, "
		"?, ?, ?)"
		" ON CONFLICT(uid, name) DO UPDATE SET kind = excluded.kind, intent = "
		"excluded.intent,"
		" turn = excluded.turn, created_ns = excluded.created_ns",
		err, "isiiii", s->uid, snap->name, (int64_t)snap->kind, (int64_t)snap->intent,
		(int64_t)snap->turn, snap->created_ns);
	if (r == 0)
		r = run(db, "UPDATE sessions SET turn = ?, snap_seq = ? WHERE uid = ?", err, "iii",
			(int64_t)s->turn, (int64_t)s->snap_seq, s->uid);
	return end(db, r, err);
}

static int
snap_delete(struct sb_hostdb *db, int64_t uid, const char *name, struct sb_error *err)
{
	return run(db, "DELETE FROM snapshots WHERE uid = ? AND name = ?", err, "is", uid, name);
}

int
sb_hostdb_snap_delete(struct sb_hostdb *db, int64_t uid, const char *name, struct sb_error *err)
{
	int r = begin(db, false, err);

	return r < 0 ? r : end(db, snap_delete(db, uid, name, err), err);
}

int
sb_hostdb_rolled_back(struct sb_hostdb *db, const struct sb_hsess *s, enum sb_host_state state,
	const struct sb_strlist *dropped, bool durable, struct sb_error *err)
{
	int r = begin(db, durable, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < dropped->n && r == 0; i++)
		r = snap_delete(db, s->uid, dropped->v[i], err);
	if (r == 0)
		r = session_update(db, s, state, err);
	return end(db, r, err);
}

int
sb_hostdb_hold_put(struct sb_hostdb *db, int64_t uid, const char *snap, const struct sb_hold *hold,
	struct sb_error *err)
{
	int r = begin(db, hold->intent == SB_INTENT_NONE, err);

	return r < 0 ? r :
		       end(db,
			       run(db,
				       "INSERT OR REPLACE INTO holds(uid, name, tag, intent) "
				       "VALUES(?, ?, ?, ?)",
				       err, "issi", uid, snap, hold->tag, (int64_t)hold->intent),
			       err);
}

int
sb_hostdb_hold_delete(struct sb_hostdb *db, int64_t uid, const char *snap, const char *tag,
	struct sb_error *err)
{
	int r = begin(db, false, err);

	return r < 0 ? r :
		       end(db,
			       run(db, "DELETE FROM holds WHERE uid = ? AND name = ? AND tag = ?",
				       err, "iss", uid, snap, tag),
			       err);
}

int
sb_hostdb_proc_put(struct sb_hostdb *db, const struct sb_hsess *s, const struct sb_hostdb_proc *p,
	struct sb_error *err)
{
	int r = begin(db, false, err);

	if (r < 0)
		return r;
	r = run(db,
		"INSERT OR REPLACE INTO processes(uid, id, seq, binary, address, status, has_exit, "
		"exit_code,"
		" pid, start_ticks, boot_id, started_ns, ended_ns, port)"
		" VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		err, "isissiiiiisiii", s->uid, p->id, (int64_t)p->seq, p->binary, p->address,
		(int64_t)p->status, (int64_t)p->has_exit, (int64_t)p->exit_code, p->pid,
		p->start_ticks, p->boot_id, p->started_ns, p->ended_ns, (int64_t)p->port);
	if (r == 0)
		r = run(db, "UPDATE sessions SET proc_seq = max(proc_seq, ?) WHERE uid = ?", err,
			"ii", (int64_t)p->seq, s->uid);
	return end(db, r, err);
}

int
sb_hostdb_proc_delete(struct sb_hostdb *db, int64_t uid, const char *id, struct sb_error *err)
{
	int r = begin(db, false, err);

	return r < 0 ? r :
		       end(db,
			       run(db, "DELETE FROM processes WHERE uid = ? AND id = ?", err, "is",
				       uid, id),
			       err);
}

int
sb_hostdb_session_count(struct sb_hostdb *db, int64_t *out, struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&db->mu);
	r = query(db, "SELECT count(*) FROM sessions", one_int, out, err, "");
	(void)pthread_mutex_unlock(&db->mu);
	return r;
}

int
sb_hostdb_query(struct sb_hostdb *db, const char *text, sb_hostdb_row_fn fn, void *arg, int64_t uid,
	struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&db->mu);
	r = query(db, text, fn, arg, err, "i", uid);
	(void)pthread_mutex_unlock(&db->mu);
	return r;
}
