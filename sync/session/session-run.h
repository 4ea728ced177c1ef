/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_RUN_H
#define SBSYNC_SESSION_RUN_H

#include <sync/remote/link.h>
#include <sync/plan/reconcile.h>
#include <sync/session/session-policy.h>
#include <sync/session/session-store.h>

/* What one sync of a session needs to know. */
struct sb_session_pass {
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

/* Syncs one pair of the session over the run's link. */
int sb_session_run_pair(struct sb_session_pass *pass, size_t k, struct sb_error *err);

#endif
