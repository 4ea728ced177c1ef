/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_RUN_H
#define SBSYNC_SESSION_RUN_H

#include <sync/link.h>
#include <sync/reconcile.h>
#include <sync/session-store.h>

/* What one sync of a session needs to know. */
struct session_run {
	const struct sb_session *s;
	int dirfd; /* the session's folder */
	const struct sb_sync_opts *o;
	enum sb_direction direction;
	enum sb_session_conflict policy;
	bool first; /* start: the sandbox's identity is written, the rules are frozen */
	struct sb_sync_result *res;   /* of the pair being synced */
	struct sb_sync_result *whole; /* of those that are done */
	struct sb_link *link;
	struct sb_retry *retry;
};

/* Syncs one pair of the session over the run's link. */
int session_run_pair(struct session_run *run, size_t k, struct sb_error *err);

#endif
