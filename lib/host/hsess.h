/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HSESS_H
#define SB_HOST_HSESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <base/strmap.h>
#include <host/files/filepool.h>
#include <host/snap.h>
#include <host/state.h>
#include <sb/host-exec.h>
#include <sb/host-snapshot.h>

struct sb_host_proc;
struct sb_runtime;

/* A running tool call; it lies on the stack of its thread. */
struct sb_hsess_tool {
	struct sb_hsess_tool *next;
	struct sb_cancel *kill; /* requested by who needs the session still */
	bool again;             /* it changes nothing and can be called again */
};

/*
 * A session in memory. Whoever changes it writes the database first, then this struct. Operations
 * that change storage or state take the slot, one at a time. A destroy does not wait for the slot
 * to set DESTROYING, so a slot holder looks at the state again before it writes one.
 */
struct sb_hsess {
	struct sb_hsess *next; /* hash chain, guarded by the host */
	atomic_uint refs;
	char id[SB_HOST_ID_MAX + 1];
	char nonce[SB_HOST_NONCE_LEN + 1]; /* random, in hex; set once */
	_Atomic int64_t uid;               /* of its row; never reused, unlike the id */
	struct sb_runtime
		*rt; /* what runs its commands; the host's. Set once, before anybody else sees it */
	enum sb_host_runtime runtime; /* its kind, as recorded */
	enum sb_host_network network;
	pthread_mutex_t network_mu; /* held over a change of `policy`; before `mu` */

	/*
	 * Shared by who starts something in the workspace or writes to it, until it is started or
	 * written; whoever exchanges the workspace has it alone. Before `mu`.
	 */
	pthread_rwlock_t place;

	pthread_mutex_t mu; /* guards all below */
	pthread_cond_t cv;  /* slot, tool count, state, gate */
	bool slot_taken;
	bool gone; /* destroyed; only references are left */
	enum sb_host_state state;
	bool resume; /* paused by a shutdown */
	bool gate;   /* tools wait: a turn ends */
	bool ran;    /* something was started in it that may still be there */
	bool purge;  /* has snapshots with SB_INTENT_REMOVE that the worker removes */
	unsigned active_tools;
	struct sb_hsess_tool *tools; /* the running ones, so that they can be killed */
	char *mountpoint;
	char *base;
	char *parent_id, *parent_snap; /* of a fork; NULL else */
	int64_t parent_uid;
	char *why;
	char *rollback_to;
	char *policy;           /* network outbound: see host-network.h; NULL else */
	uint64_t refused;       /* attempts that the policy refused since the host was opened */
	char refused_last[300]; /* the last, and by what */
	uint64_t turn;
	uint64_t quota;
	uint64_t space_used;
	uint64_t snap_seq, proc_seq;
	int64_t created_ns;
	int64_t lasts_ms;  /* at a stretch; 0: for ever. Set with `rt` */
	int64_t active_ns; /* created or resumed last; Unix time */
	int64_t paused_ns; /* paused last; Unix time */
	/*
	 * The index of its last archive, by name: what it is in (COLD), or came from. With
	 * `cold_rest` the host has not done all that goes with its state.
	 */
	char *cold;
	bool cold_rest;
	uint64_t fence;    /* the highest that this process has seen */
	struct sb_strmap labels;
	struct sb_snap **snaps; /* oldest first */
	size_t n_snaps, cap_snaps;
	struct sb_host_proc **procs; /* oldest first */
	size_t n_procs, cap_procs;

	struct sb_filepool files; /* the workers of its tools; has a lock of its own */
};

/* With a nonce of its own. */
struct sb_hsess *sb_hsess_new(const char *id, struct sb_error *err);
struct sb_hsess *sb_hsess_ref(struct sb_hsess *s);
void sb_hsess_unref(struct sb_hsess *s);
SB_CLEANUP_PTR(sb_hsess, sb_hsess_unref)

/*
 * Takes the slot for `op`: waits for its turn, then asks the admission table (state.h) again.
 * Returns the error of the state or of the call, or SB_E_SESSION_NOT_FOUND when the session went
 * away meanwhile. Neither caller nor callee holds `mu` around it.
 */
int sb_hsess_enter(struct sb_hsess *s, enum sb_host_op op, const struct sb_host_call *call,
	struct sb_error *err);
void sb_hsess_leave(struct sb_hsess *s);

/*
 * Waits on `cv` once, until a wake-up or for a slice of time; the caller holds `mu`. SB_E_TIMEOUT
 * and SB_E_CANCELED come from `call` and `d`.
 */
int sb_hsess_wait(struct sb_hsess *s, const struct sb_host_call *call, sb_deadline d,
	const char *what, struct sb_error *err);

/* Starts a command of the session by its runtime, in the workspace that is there. */
struct sb_runtime_cmd;
struct sb_spawn_opts;
struct sb_child;
int sb_hsess_start(struct sb_hsess *s, const struct sb_runtime_cmd *cmd,
	const struct sb_spawn_opts *io, struct sb_child *out, struct sb_error *err);

/* The list of snapshots; the caller holds `mu`. The list owns what is added. */
struct sb_snap *sb_hsess_snap_find(const struct sb_hsess *s, const char *name);
int sb_hsess_snap_add(struct sb_hsess *s, struct sb_snap *snap, struct sb_error *err);
void sb_hsess_snap_drop(struct sb_hsess *s, struct sb_snap *snap);

/*
 * Waits until no tool runs; the caller holds `mu`. SB_E_TOOLS_IN_FLIGHT at `d`; SB_E_CANCELED,
 * SB_E_TIMEOUT by `call`.
 */
int sb_hsess_drain(struct sb_hsess *s, const struct sb_host_call *call, sb_deadline d,
	struct sb_error *err);
/* Tells every running tool to end; the caller holds `mu`. */
void sb_hsess_kill_tools(struct sb_hsess *s);
/* The same for those that only look, before a pause waits for the others. */
void sb_hsess_kill_looks(struct sb_hsess *s);

/* Copies what callers may see; the caller holds `mu`. */
int sb_hsess_describe(const struct sb_hsess *s, struct sb_host_session *out, struct sb_error *err);

#endif
