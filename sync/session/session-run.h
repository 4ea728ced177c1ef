/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_RUN_H
#define SBSYNC_SESSION_RUN_H

#include <sync/remote/link.h>
#include <sync/plan/reconcile.h>
#include <sync/session/session-policy.h>
#include <sync/session/session-store.h>

/* A pass: one sync of a session, over all its pairs. */
struct sb_session_pass {
	const struct sb_session *s;
	int dirfd; /* the session's folder */
	const struct sb_sync_opts *o;
	enum sb_direction direction;
	const struct sb_session_policies *policies;
	uint64_t stamp;             /* names the run in undo records */
	bool first;                 /* start: writes the sandbox's identity and freezes the rules */
	struct sb_sync_result *res; /* of the pair being synced */
	struct sb_sync_result *whole; /* of those that are done */
	struct sb_link *link;
	struct sb_retry *retry;
};

/* Syncs pair `k` of the session over the pass's link. */
int sb_session_run_pair(struct sb_session_pass *pass, size_t k, struct sb_error *err);

#endif
