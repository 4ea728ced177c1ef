/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOSTIMPL_H
#define SB_HOST_HOSTIMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include <host/hostdb.h>
#include <host/hsess.h>
#include <host/process.h>
#include <host/runtime/runtime.h>
#include <host/storage/storage.h>
#include <sb/host-exec.h>
#include <sb/host-snapshot.h>

struct sb_event_queue;
struct sb_proc_monitor;

/* Lock order: host mu, session mu, database. No event is delivered under any of them. */
struct sb_host {
	struct sb_host_opts o; /* strings owned by `strings` */
	struct sb_strlist strings;
	struct sb_hostdb *db;
	struct sb_storage *st;
	struct sb_runtime *rt;                        /* the default */
	struct sb_runtime *rts[SB_HOST_RUNTIME_AUTO]; /* by kind, opened when first asked for;
							 guarded by `rt_mu` */
	pthread_mutex_t rt_mu;
	char key[40]; /* names this host in the marks of processes: the same after a restart */
	int lock_fd;  /* one host a state directory */
	int ops_fd;   /* shared by our helper processes: see sb_storage_zfs_open */
	int64_t started_ms;
	struct sb_event_queue *events;
	struct sb_proc_monitor *monitor;

	pthread_mutex_t mu; /* guards the map and what follows */
	pthread_cond_t cv;
	struct sb_hsess **bucket;
	size_t n_buckets, n_sessions;
	unsigned calls; /* under way */
	bool closing;   /* shutdown began */
	bool worker_on, worker_stop, worker_poke;
	pthread_t worker;

	pthread_mutex_t space_mu;
	struct sb_storage_space space;
	int64_t space_at; /* monotonic ms; 0: never */

	atomic_uint proxies; /* that have not let go of the host yet */
	atomic_ullong created, paused, resumed, destroyed, forked, adopted, recovered;
	atomic_ullong snapshots, snapshots_deleted, rollbacks, turns, tools, tool_errors, launched;
};

/*
 * A call begins: counted, so that close waits for it. With `work`, refused after a shutdown began.
 */
int sb_hostimpl_begin(struct sb_host *h, bool work, struct sb_error *err);
void sb_hostimpl_end(struct sb_host *h);

/* The session with a reference, or NULL (SB_E_INVAL, SB_E_SESSION_NOT_FOUND). */
struct sb_hsess *sb_hostimpl_find(struct sb_host *h, const char *id, struct sb_error *err);
/* By row; NULL when it is gone. */
struct sb_hsess *sb_hostimpl_find_uid(struct sb_host *h, int64_t uid);
/* Every session, referenced; `out` is freed by the caller after unref. */
int sb_hostimpl_all(struct sb_host *h, struct sb_hsess ***out, size_t *out_n, struct sb_error *err);
/* Into and out of the map, with `mu` held; the map has its own reference. */
int sb_hostimpl_map_add(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);
void sb_hostimpl_map_remove(struct sb_host *h, struct sb_hsess *s);
struct sb_hsess *sb_hostimpl_map_get(struct sb_host *h, const char *id);

/*
 * Database, then memory, then an event; with the session's `mu` held. The transition must be in the
 * table.
 */
int sb_hostimpl_set_state(struct sb_host *h, struct sb_hsess *s, enum sb_host_state to,
	bool durable, struct sb_error *err);

/* Storage, row, map: with the slot held in DESTROYING. Afterwards `s->gone`. */
int sb_hostimpl_finish_destroy(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);
/*
 * A fork is gone or was never made: its origin needs one reason less to stay. Without slot or
 * locks.
 */
void sb_hostimpl_forget_fork(struct sb_host *h, const struct sb_hsess *fork);
/* Removes a snapshot that was made to be forked, when nobody needs it. Without slot or locks. */
void sb_hostimpl_drop_fork_snap(struct sb_host *h, struct sb_hsess *p, const char *name);

/* Sessions made from a snapshot. Exact when the slot is held and nobody pins it. */
unsigned sb_hostimpl_forks(struct sb_host *h, int64_t uid, const char *snap);

/* SB_E_POOL_FULL when the storage is at its critical mark. */
int sb_hostimpl_admit(struct sb_host *h, struct sb_error *err);

/* Removes what has SB_INTENT_REMOVE, with the slot held. */
int sb_hostimpl_purge(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);
/*
 * Marks what is beyond the limit of `kind` for removal and removes it now or by the worker. Slot
 * held.
 */
void sb_hostimpl_retain(struct sb_host *h, struct sb_hsess *s, enum sb_host_snap_kind kind);
/* Takes a snapshot, slot held. `out` may be NULL. */
int sb_hostimpl_snapshot(struct sb_host *h, struct sb_hsess *s, const char *name,
	enum sb_host_snap_kind kind, uint64_t turn, struct sb_host_snapshot *out,
	struct sb_error *err);
/* Whether the session's storage can make snapshots at all: SB_E_NO_SNAPSHOTS. */
int sb_hostimpl_need_snapshots(const struct sb_host *h, struct sb_error *err);
/*
 * The way into an operation: counted call, session, snapshots at all (where it is about them),
 * slot. After success the caller ends with sb_hostimpl_op_done, which hands its result on.
 */
int sb_hostimpl_op_start(struct sb_host *h, const char *id, enum sb_host_op op, bool work,
	const struct sb_host_call *call, struct sb_hsess **out, struct sb_error *err);
int sb_hostimpl_op_done(struct sb_host *h, struct sb_hsess *s, int r);
/*
 * The snapshot of that name as callers see it, or NULL with SB_E_SNAPSHOT_NOT_FOUND. Slot held,
 * `mu` not.
 */
struct sb_snap *sb_hostimpl_visible(struct sb_hsess *s, const char *name, struct sb_error *err);
/* The kind and turn a name tells by its form. */
enum sb_host_snap_kind sb_hostimpl_snap_kind(const struct sb_host *h, const char *name,
	uint64_t *turn);

/*
 * The common way of create, fork and receive: `src->fd`, `from_*` or `base`; checks and labels from
 * `o`.
 */
struct sb_hostimpl_origin {
	struct sb_storage_source src;
	struct sb_hsess *parent; /* of a fork, else NULL */
	const char *parent_snap;
	uint64_t turn;
};
int sb_hostimpl_create(struct sb_host *h, const struct sb_host_create_opts *o,
	const struct sb_hostimpl_origin *from, const struct sb_host_call *call,
	struct sb_host_session *out, struct sb_error *err);

/* Finishes what the last run left. */
int sb_hostimpl_recover(struct sb_host *h, struct sb_error *err);
/* Makes records of snapshots and holds agree with the storage. Slot held or not open yet. */
int sb_hostimpl_reconcile(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);
/* Rolls a session in ROLLING_BACK on to its recorded target. Slot held or not open yet. */
int sb_hostimpl_roll(struct sb_host *h, struct sb_hsess *s, enum sb_host_state before,
	struct sb_error *err);

/* A session in DESTROYING that nobody works on: finished now, tools and processes killed. */
int sb_hostimpl_reap(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);

/* The background thread has something to do. */
void sb_hostimpl_poke(struct sb_host *h);
int sb_hostimpl_worker_start(struct sb_host *h, struct sb_error *err);
void sb_hostimpl_worker_stop(struct sb_host *h);

/* The runtime of that kind, opened when it is not yet; AUTO: the default. */
struct sb_runtime *sb_hostimpl_runtime(struct sb_host *h, enum sb_host_runtime kind,
	struct sb_error *err);
/*
 * What a session with these options would run in, or why it may not: kind and network are checked.
 */
struct sb_runtime *sb_hostimpl_runtime_for(struct sb_host *h, const struct sb_host_create_opts *o,
	struct sb_error *err);
/*
 * The network of a session there that asked for this one: never DEFAULT, so it stays what it is
 * when the host's default changes.
 */
enum sb_host_network sb_hostimpl_network_for(const struct sb_host *h, const struct sb_runtime *rt,
	enum sb_host_network asked);
void sb_hostimpl_runtimes_close(struct sb_host *h);

/* Unix time. */
int64_t sb_hostimpl_now_ns(void);

/* event.c */
struct sb_event_queue *sb_event_new(sb_host_event_fn fn, void *arg, struct sb_error *err);
void sb_event_free(struct sb_event_queue *q);
/* Notes an event (any lock may be held), and hands out what is noted (no lock may be held). */
void sb_event_note(struct sb_event_queue *q, const char *kind, const char *session,
	const char *subject, enum sb_host_state state);
void sb_event_flush(struct sb_event_queue *q);

#endif
