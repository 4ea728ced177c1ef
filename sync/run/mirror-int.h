/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_MIRROR_INT_H
#define SBSYNC_MIRROR_INT_H

#include <sbsync/sync.h>
#include <sync/run/connect.h>
#include <sync/remote/link.h>
#include <sync/plan/plan.h>
#include <sync/plan/reconcile.h>
#include <sync/replica/replica.h>
#include <sync/run/sync-result.h>
#include <sync/replica/stage.h>
#include <sync/tree/diff.h>
#include <sync/remote/exchange.h>

/* One mirror run. mirror.c sets it up, mirror-push.c and mirror-pull.c do the two directions. */
struct mirror {
	const struct sb_sync_opts *o;
	struct sb_sync_result *res;
	struct sb_link *link;
	struct sb_retry *retry;
	struct sb_replica *local;
	struct sb_rules *rules; /* final ones, after the local scan */
	struct sb_digest rules_digest;
	bool no_delta;
	bool keep_all; /* sent content goes into the base store, however fast the link is */
	bool near;     /* the far side is a directory of this machine */
	bool frozen;   /* the rules are those of the session: ignore files are not read again */
	struct sb_exchange remote;
	struct sb_plan plan;
	const char *near_name; /* for messages */
	const char *far_name;
	bool set_root;                   /* the receiver's root directory gets mode and mtime too */
	bool keep;                       /* received content goes into the base store (sessions) */
	const struct sb_reconciled *rec; /* sessions: knows which saved versions come from where */
	char *source;                    /* the last answer of mirror_source that had to be made */
	int64_t phase_start;
	enum sb_phase phase;
	struct sb_progress progress;
	struct mirror_early *early; /* the local scan that runs beside */
};

/* Nobody is told while the early scan runs: it tells of itself. */
void mirror_phase(struct mirror *m, enum sb_phase p);

/*
 * Begins the local scan in a thread of its own; where that cannot be, it is made later. Until join
 * or stop the replica and the rules are its own.
 */
void mirror_early_start(struct mirror *m, bool source);
/* The rules that were asked for, without what a scan found. */
const struct sb_rules *mirror_given_rules(const struct mirror *m);
/* Its end and result. */
int mirror_early_join(struct mirror *m, struct sb_error *err);
/* Ends it, if there is one; its result is not wanted. */
void mirror_early_stop(struct mirror *m);
int mirror_scan_local(struct mirror *m, bool source, struct sb_error *err);

int mirror_push(struct mirror *m, struct sb_error *err);
int mirror_pull(struct mirror *m, struct sb_error *err);

/* The steps of the two directions, for whoever has a difference of his own. Both take `d` over. */
int mirror_hash_rest(struct mirror *m, struct sb_error *err);
int mirror_plan_push(struct mirror *m, struct sb_diff *d, struct sb_error *err);
int mirror_send_plan(struct mirror *m, struct sb_commit_result *res, struct sb_error *err);
int mirror_plan_pull(struct mirror *m, struct sb_diff *d, const struct sb_stage *st,
	struct sb_error *err);
int mirror_receive_plan(struct mirror *m, struct sb_stage *stage, struct sb_commit_result *res,
	struct sb_error *err);
/* Mode bits that are taken from a sandbox: no set-id, no write for others beyond the umask. */
uint16_t mirror_mode_mask(void);
/*
 * Where the content for `path` is in the sender's tree; NULL: at `path`. Valid until the next call.
 */
const char *mirror_source(struct mirror *m, const char *path);

int mirror_open_local(struct mirror *m, const char *root, const uint8_t pair[16], bool create,
	bool readonly, struct sb_error *err);
int mirror_add_rules(const struct sb_sync_opts *o, struct sb_rules *rules, struct sb_error *err);
/*
 * Starts the agent's scan, scans here, reads the answer; both under the same rules. `source`: small
 * new files need no digest yet.
 */
int mirror_scan_both(struct mirror *m, struct sb_begin *b, bool source, struct sb_error *err);
/* The absolute path, also of what is not there yet. */
char *mirror_absolute(const char *path, struct sb_error *err);

/* Drops deletions of paths that the source could not read: not seen is not gone. */
void mirror_keep_unseen(struct sb_diff *d, const struct sb_skipped *v, size_t n);
/* A send failed: the far side's own word, if it sent one, explains it better. */
int mirror_send_failed(struct mirror *m, int code, struct sb_error *err);

#endif
