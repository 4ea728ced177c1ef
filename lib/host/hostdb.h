/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOSTDB_H
#define SB_HOST_HOSTDB_H

#include <base/strlist.h>
#include <host/hsess.h>

/*
 * The host's memory on disk: SQLite in WAL mode, one connection behind a mutex. Every function is
 * one transaction. One that makes a state final for the caller survives a power loss. One that
 * notes an intent survives the end of the process, of which the storage itself can tell nothing.
 */
struct sb_hostdb;

/*
 * Makes the file when `path` is missing. SB_E_VERSION for a newer schema, SB_E_CORRUPT for a
 * damaged or foreign file.
 */
struct sb_hostdb *sb_hostdb_open(const char *path, struct sb_error *err);
void sb_hostdb_close(struct sb_hostdb *db);

/*
 * Reads everything and calls `fn` with each session, its labels, snapshots and holds; `fn` owns the
 * session.
 */
typedef int (*sb_hostdb_session_fn)(struct sb_hsess *s, void *arg, struct sb_error *err);
int sb_hostdb_load(struct sb_hostdb *db, sb_hostdb_session_fn fn, void *arg, struct sb_error *err);

/* How many sessions it has. */
int sb_hostdb_session_count(struct sb_hostdb *db, int64_t *out, struct sb_error *err);

/* Writes the new row and sets `s->uid`. SB_E_SESSION_EXISTS when a session has that id. */
int sb_hostdb_session_insert(struct sb_hostdb *db, struct sb_hsess *s, struct sb_error *err);
/*
 * Writes the state and everything that goes with it: mountpoint, why, rollback_to, resume, turn,
 * quota, active_ns, paused_ns, cold.
 */
int sb_hostdb_session_update(struct sb_hostdb *db, const struct sb_hsess *s,
	enum sb_host_state state, bool durable, struct sb_error *err);
/*
 * Keeps the fencing token of that id if it is higher than what is known; `seen` is the highest one
 * now.
 */
int sb_hostdb_fence(struct sb_hostdb *db, const char *id, int64_t token, int64_t now_ns,
	int64_t *seen, struct sb_error *err);
int sb_hostdb_session_delete(struct sb_hostdb *db, int64_t uid, struct sb_error *err);
int sb_hostdb_labels_set(struct sb_hostdb *db, int64_t uid, const struct sb_strmap *labels,
	struct sb_error *err);

int sb_hostdb_policy_set(struct sb_hostdb *db, int64_t uid, const char *policy,
	struct sb_error *err);

/* Inserts or replaces the snapshot; also writes the session's counters (turn, snap_seq, proc_seq).
 */
int sb_hostdb_snap_put(struct sb_hostdb *db, const struct sb_hsess *s, const struct sb_snap *snap,
	struct sb_error *err);
int sb_hostdb_snap_delete(struct sb_hostdb *db, int64_t uid, const char *name,
	struct sb_error *err);
/*
 * Records the end of a rollback in one step: drops the listed snapshots and sets the state.
 */
int sb_hostdb_rolled_back(struct sb_hostdb *db, const struct sb_hsess *s, enum sb_host_state state,
	const struct sb_strlist *dropped, bool durable, struct sb_error *err);

int sb_hostdb_hold_put(struct sb_hostdb *db, int64_t uid, const char *snap,
	const struct sb_hold *hold, struct sb_error *err);
int sb_hostdb_hold_delete(struct sb_hostdb *db, int64_t uid, const char *snap, const char *tag,
	struct sb_error *err);

/* A process as a row; proc.h says what the fields mean. */
struct sb_hostdb_proc {
	const char *id, *binary, *address;
	uint64_t seq;
	int status;
	bool has_exit;
	int exit_code;
	int64_t pid, start_ticks, started_ns, ended_ns;
	const char *boot_id;
	unsigned port;
};
int sb_hostdb_proc_put(struct sb_hostdb *db, const struct sb_hsess *s,
	const struct sb_hostdb_proc *row, struct sb_error *err);
int sb_hostdb_proc_delete(struct sb_hostdb *db, int64_t uid, const char *id, struct sb_error *err);
typedef int (*sb_hostdb_proc_fn)(const struct sb_hostdb_proc *row, void *arg, struct sb_error *err);
int sb_hostdb_proc_load(struct sb_hostdb *db, int64_t uid, sb_hostdb_proc_fn fn, void *arg,
	struct sb_error *err);

#endif
