/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RUN_H
#define SBSYNC_RUN_H

#include <sbsync/sync.h>
#include <sync/plan/plan.h>
#include <sync/plan/reconcile.h>
#include <sync/remote/exchange.h>
#include <sync/remote/link.h>
#include <sync/replica/replica.h>
#include <sync/replica/stage.h>
#include <sync/run/retry.h>
#include <sync/run/step.h>
#include <sync/tree/diff.h>
#include <sync/wire/endpoint.h>

/*
 * A run: one pair of trees, synced once. It goes through the steps of enum sb_step; each function
 * below does one or a few of them. What is to be done is not decided here: a verb compares the
 * trees, and the run plans the difference and carries the plan out. The verbs are the one-way
 * mirror (sync-mirror.c) and the pass of a session (sync/session/session-run.c).
 *
 *   connect, scan, exchange   sb_run_open_local, sb_run_scan_both (run-scan.c, run-early.c)
 *   plan                      sb_run_plan_push, sb_run_plan_pull
 *   transfer ... commit       sb_run_push (run-push.c), sb_run_pull (run-pull.c)
 *   record                    the verb, which knows what the two trees have in common now
 *
 * One thread drives a run.
 */
struct sb_run {
	/* Set by the verb before sb_run_start. */
	const struct sb_sync_opts *o;
	struct sb_sync_result *res;
	struct sb_link *link;
	struct sb_retry *retry;
	const char *near_name; /* for messages */
	const char *far_name;
	struct sb_rules *rules; /* what was asked for; the scan adds ignore files it finds */
	bool frozen;            /* the rules are those of the session: .gitignore is not read */
	bool near;              /* the far side is a directory of this machine */
	bool no_delta;
	bool keep_all;  /* a push keeps all it sends in the base store, however fast the link is */
	bool keep;      /* a pull keeps what it receives in the base store */
	bool own_brake; /* the verb looks after the brake of a pull, as long as the user says
			 * nothing
			 */
	bool set_root;  /* the receiver's root directory gets mode and mtime too */
	const struct sb_reconciled
		*rec; /* sessions: which saved versions come from where; or NULL */

	/* Found by the steps. */
	struct sb_replica *local;
	struct sb_digest rules_digest; /* after the scan */
	struct sb_exchange far;        /* after the exchange */

	/* The run's own. */
	struct sb_step_clock clock;
	struct sb_progress progress;
	struct sb_run_early *early;     /* the local scan that runs while the connection is made */
	char *source;                   /* the last answer of sb_run_source that had to be made */
	const struct sb_cancel *before; /* what the thread worked under (base/work.h) */
};

/*
 * A link to an agent for this endpoint (a child process for a local one), for one sync: over
 * o->conn with the agent that waits there, or over a connection of its own. NULL with `err` on
 * failure. The caller gives it back with sb_run_link_give.
 */
struct sb_link *sb_run_link_take(const struct sb_endpoint *e, const struct sb_sync_opts *o,
	struct sb_retry *t, struct sb_error *err);

/*
 * Gives back the link of a run that ended with `code` (`l` NULL: sb_run_link_take failed). The
 * agent waits for the next run when all went well and the connection stays, else it ends. Adds the
 * bytes on the wire to `res`. Returns `code`, with a message that explains it better, or why the
 * end failed.
 */
int sb_run_link_give(struct sb_link *l, int code, struct sb_sync_result *res, struct sb_retry *t,
	struct sb_error *err);

/* The first step, connect, begins now; until the end the thread works under the run's token. */
void sb_run_start(struct sb_run *run);
/* Enters a step; tells the progress callback, unless the early scan does that just now. */
void sb_run_step(struct sb_run *run, enum sb_step step);
/* Ends the last step and frees what the run found, and its rules. The link is the verb's. */
void sb_run_end(struct sb_run *run);

/*
 * Adds the exclude patterns and files of the options. Where our own state lies beneath the local
 * `root` it is excluded, too: a sandbox must not rewrite what we remember, nor the user's consents.
 */
int sb_run_add_rules(const struct sb_sync_opts *o, const char *root, struct sb_rules *rules,
	struct sb_error *err);
/* Opens and locks the local root; see sb_replica_open for the arguments. */
int sb_run_open_local(struct sb_run *run, const char *root, const uint8_t pair[16], bool create,
	bool readonly, struct sb_error *err);
/*
 * Begins the local scan in a thread of its own, while the connection is made; without a thread it
 * is made later. Until sb_run_scan_both or sb_run_early_stop the replica and the rules are the
 * thread's.
 */
void sb_run_early_start(struct sb_run *run, bool source);
/* Ends the early scan, if there is one, and drops its result. */
void sb_run_early_stop(struct sb_run *run);
/*
 * Starts the agent's scan, scans here (or joins the early scan), reads the answer; both under the
 * same rules. `source`: small new files need no digest yet.
 */
int sb_run_scan_both(struct sb_run *run, struct sb_begin *b, bool source, struct sb_error *err);
/*
 * Hashes what the scan of a source left for later and the plan needs. `based`: contents are
 * compared with a base, too, so an empty far side is no reason to leave any out.
 */
int sb_run_hash_rest(struct sb_run *run, bool based, struct sb_error *err);

/* Drops deletions of paths that the source could not read: not seen is not gone. */
int sb_run_keep_unseen(struct sb_diff *d, const struct sb_skipped *v, size_t n,
	struct sb_error *err);
/* Mode bits that are taken from a sandbox: no set-id, no write for others beyond the umask. */
uint16_t sb_run_mode_mask(void);

/*
 * Plan `d`, the changes to the far tree or to the local one, and check the brake. Both take `d`
 * over; `out` is zeroed by the caller. `stage` holds what an interrupted pull left.
 */
int sb_run_plan_push(struct sb_run *run, struct sb_diff *d, struct sb_plan *out,
	struct sb_error *err);
int sb_run_plan_pull(struct sb_run *run, struct sb_diff *d, const struct sb_stage *stage,
	struct sb_plan *out, struct sb_error *err);

/*
 * After a push that left nothing alone the far tree must be `want`, by the id in `res`; SB_E_PROTO
 * otherwise. Where there are hard links an id that differs is no proof of anything.
 */
int sb_run_check_tree(const struct sb_run *run, const struct sb_manifest *want,
	const struct sb_commit_result *res, struct sb_error *err);

/*
 * Carry a plan out, up to and including the commit: the push on the far side, the pull here. `res`
 * (zeroed by the caller) says what the commit did; the result of the run is updated, too. The pull
 * takes `stage` over.
 */
int sb_run_push(struct sb_run *run, const struct sb_plan *plan, struct sb_commit_result *res,
	struct sb_error *err);
int sb_run_pull(struct sb_run *run, const struct sb_plan *plan, struct sb_stage *stage,
	struct sb_commit_result *res, struct sb_error *err);

#endif
