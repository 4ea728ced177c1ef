/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/service/replay.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <sqlite3.h>

#define ROWS_MAX 4096
#define PURGE_EVERY 256 /* calls */
#define BUSY_MS 2000

enum { FIND, BEGIN, END, FAIL, FORGET, PURGE, STATEMENTS };

/* A result that was too long is kept as NULL with `ended` set. */
static const char *const texts[STATEMENTS] = {
	[FIND] = "SELECT digest, ended, result FROM calls WHERE nonce = ?1 AND id = ?2",
	[BEGIN] = "INSERT INTO calls(nonce, id, digest, began) VALUES(?1, ?2, ?3, ?4)",
	[END] = "UPDATE calls SET ended = ?4, result = ?3 WHERE nonce = ?1 AND id = ?2",
	[FAIL] = "DELETE FROM calls WHERE nonce = ?1 AND id = ?2",
	[FORGET] = "DELETE FROM calls WHERE nonce = ?1",
	[PURGE] =
		("DELETE FROM calls WHERE (ended > 0 AND ended < ?4) OR began < ?4 - 86400 OR seq "
		 "<= (SELECT max(seq) FROM calls) - ?5"),
};

struct sb_rpc_replay {
	pthread_mutex_t mu;
	sqlite3 *sql;
	sqlite3_stmt *stmt[STATEMENTS];
	int64_t ttl_s;
	unsigned calls;
};

static int
db_fail(struct sb_rpc_replay *r, struct sb_error *err)
{
	return sb_fail(err, SB_E_SYS, "record of calls: %s", sqlite3_errmsg(r->sql));
}

static void
put(sqlite3_stmt *s, int at, const char *text)
{
	if (text)
		(void)sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
	else
		(void)sqlite3_bind_null(s, at);
}

/* With `mu` held: a statement that gives no rows. */
static int
run(struct sb_rpc_replay *r, int what, const char *nonce, const char *id, struct sb_error *err)
{
	sqlite3_stmt *s = r->stmt[what];
	int step;

	put(s, 1, nonce);
	if (id)
		put(s, 2, id);
	step = sqlite3_step(s);
	(void)sqlite3_reset(s);
	(void)sqlite3_clear_bindings(s);
	return step == SQLITE_DONE ? 0 : db_fail(r, err);
}

/* With `mu` held. */
static void
purge(struct sb_rpc_replay *r)
{
	sqlite3_stmt *s = r->stmt[PURGE];

	(void)sqlite3_bind_int64(s, 4, (int64_t)time(NULL) - r->ttl_s);
	(void)sqlite3_bind_int64(s, 5, ROWS_MAX);
	(void)sqlite3_step(s);
	(void)sqlite3_reset(s);
}

static int
prepare(struct sb_rpc_replay *r, const char *path, struct sb_error *err)
{
	static const char schema[] =
		"PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
		"CREATE TABLE IF NOT EXISTS calls(seq INTEGER PRIMARY KEY AUTOINCREMENT,"
		" nonce TEXT NOT NULL, id TEXT NOT NULL, digest BLOB NOT NULL,"
		" began INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0, result TEXT,"
		" UNIQUE(nonce, id)) STRICT;";

	if (sqlite3_open_v2(path, &r->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
		SQLITE_OK)
		return db_fail(r, err);
	(void)chmod(path, 0600);
	(void)sqlite3_busy_timeout(r->sql, BUSY_MS);
	if (sqlite3_exec(r->sql, schema, NULL, NULL, NULL) != SQLITE_OK)
		return db_fail(r, err);
	for (int i = 0; i < STATEMENTS; i++)
		if (sqlite3_prepare_v3(r->sql, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &r->stmt[i],
			    NULL) != SQLITE_OK)
			return db_fail(r, err);
	purge(r);
	return 0;
}

struct sb_rpc_replay *
sb_rpc_replay_open(const char *path, int64_t ttl_s, struct sb_error *err)
{
	struct sb_rpc_replay *r = calloc(1, sizeof *r);

	if (!r) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	(void)pthread_mutex_init(&r->mu, NULL);
	r->ttl_s = ttl_s;
	if (prepare(r, path, err) < 0) {
		sb_rpc_replay_close(r);
		return NULL;
	}
	return r;
}

void
sb_rpc_replay_close(struct sb_rpc_replay *r)
{
	if (!r)
		return;
	for (int i = 0; i < STATEMENTS; i++)
		(void)sqlite3_finalize(r->stmt[i]);
	(void)sqlite3_close(r->sql);
	(void)pthread_mutex_destroy(&r->mu);
	free(r);
}

/* With `mu` held: 0 when the call is not known. */
static int
find(struct sb_rpc_replay *r, const char *nonce, const char *id, const uint8_t *digest,
	char **out_text, struct sb_error *err)
{
	sqlite3_stmt *s = r->stmt[FIND];
	const void *was;
	int result = 0, step;

	put(s, 1, nonce);
	put(s, 2, id);
	step = sqlite3_step(s);
	if (step == SQLITE_ROW) {
		was = sqlite3_column_blob(s, 0);
		if (!was || sqlite3_column_bytes(s, 0) != SB_RPC_IDEM_DIGEST ||
			memcmp(was, digest, SB_RPC_IDEM_DIGEST) != 0)
			result = sb_fail(err, SB_E_INVAL,
				"ToolCallID: was used for another call of this session already");
		else if (sqlite3_column_int64(s, 1) == 0)
			result = sb_fail(err, SB_E_STATE,
				"ToolCallID: this call began before the host was restarted, and "
				"nobody knows how far it came: look, and use a new id");
		else if (sqlite3_column_type(s, 2) == SQLITE_NULL)
			result = sb_fail(err, SB_E_STATE,
				"ToolCallID: this call ran before the host was restarted; its "
				"result was too long to be kept");
		else
			result = (*out_text = strdup((const char *)sqlite3_column_text(s, 2))) ?
				1 :
				sb_fail(err, SB_E_NOMEM, "out of memory");
	} else if (step != SQLITE_DONE) {
		result = db_fail(r, err);
	}
	(void)sqlite3_reset(s);
	(void)sqlite3_clear_bindings(s);
	return result;
}

int
sb_rpc_replay_begin(struct sb_rpc_replay *r, const char *nonce, const char *call_id,
	const uint8_t digest[SB_RPC_IDEM_DIGEST], char **out_text, struct sb_error *err)
{
	int found;

	(void)pthread_mutex_lock(&r->mu);
	if (++r->calls % PURGE_EVERY == 0)
		purge(r);
	found = find(r, nonce, call_id, digest, out_text, err);
	if (found == 0) {
		(void)sqlite3_bind_blob(r->stmt[BEGIN], 3, digest, SB_RPC_IDEM_DIGEST,
			SQLITE_STATIC);
		(void)sqlite3_bind_int64(r->stmt[BEGIN], 4, (int64_t)time(NULL));
		found = run(r, BEGIN, nonce, call_id, err);
	}
	(void)pthread_mutex_unlock(&r->mu);
	return found;
}

void
sb_rpc_replay_end(struct sb_rpc_replay *r, const char *nonce, const char *call_id, const char *text)
{
	(void)pthread_mutex_lock(&r->mu);
	if (text) {
		put(r->stmt[END], 3, strlen(text) <= SB_RPC_REPLAY_RESULT_MAX ? text : NULL);
		(void)sqlite3_bind_int64(r->stmt[END], 4, (int64_t)time(NULL));
	}
	(void)run(r, text ? END : FAIL, nonce, call_id, NULL);
	(void)pthread_mutex_unlock(&r->mu);
}

void
sb_rpc_replay_forget(struct sb_rpc_replay *r, const char *nonce)
{
	(void)pthread_mutex_lock(&r->mu);
	(void)run(r, FORGET, nonce, NULL, NULL);
	(void)pthread_mutex_unlock(&r->mu);
}
