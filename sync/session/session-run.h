/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_RUN_H
#define SBSYNC_SESSION_RUN_H

#include <sync/remote/link.h>
#include <sync/plan/reconcile.h>
#include <sync/session/session-store.h>

/* What one sync of a session needs to know. */
struct sb_session_run {
	const struct sb_session *s;
	int dirfd; /* the session's folder */
	const struct sb_sync_opts *o;
	enum sb_direction direction;
	const struct sb_session_policies *policies;
	uint64_t stamp; /* names the run in undo records */
	bool first;     /* start: the sandbox's identity is written, the rules are frozen */
	struct sb_sync_result *res;   /* of the pair being synced */
	struct sb_sync_result *whole; /* of those that are done */
	struct sb_link *link;
	struct sb_retry *retry;
};

/* A session's folder, locked. */
struct sb_session_held {
	int dirfd;
	int lockfd;
};
int sb_session_hold(const char *state_dir, const char *name, bool create, struct sb_session_held *h,
	struct sb_error *err);
void sb_session_let_go(struct sb_session_held *h);

/*
 * The way to the other side as it was given at the start, where `o` does not say otherwise. Borrows
 * from `s`.
 */
void sb_session_use_way(const struct sb_session *s, struct sb_sync_opts *o);

/* A number larger than that of any run before. */
uint64_t sb_session_stamp(void);

/* Which policy holds where: the rules of the session, else one for all. */
struct sb_session_policies {
	enum sb_policy all;
	struct {
		struct sb_rules *match;
		enum sb_policy policy;
	} * v;
	size_t n;
};
int sb_session_policies_make(const struct sb_session *s, enum sb_session_conflict asked,
	struct sb_session_policies *out, struct sb_error *err);
void sb_session_policies_free(struct sb_session_policies *p);
/* May anything be merged? Then the base's bytes have to be kept. */
bool sb_session_policies_merge(const struct sb_session_policies *p);
/* `arg` is the struct sb_session_policies. */
enum sb_policy sb_session_policy_at(const char *path, void *arg);

/* Syncs one pair of the session over the run's link. */
int sb_session_run_pair(struct sb_session_run *run, size_t k, struct sb_error *err);

#endif
