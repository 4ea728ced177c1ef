/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_LOCAL_H
#define SBSYNC_SESSION_LOCAL_H

#include <base/strlist.h>
#include <sbsync/session.h>
#include <sync/wire/proto.h>
#include <sync/plan/guard-tree.h>
#include <sync/replica/replica.h>
#include <sync/run/step.h>

/*
 * Changes a session's local root without the far side: undo, resolve, merge. It stages, journals
 * and checks against the scan as every commit does, and undo can take it back.
 */
struct sb_session_local {
	/* `needed[i]` goes only when `made[i]`, which was made of it, is in place. */
	struct sb_strlist made, needed;
	const struct sb_session *s;
	const struct sb_sync_opts *o;
	int dirfd; /* the session's folder */
	size_t pair;
	uint64_t stamp;         /* of the run, for its undo record */
	struct sb_replica *rep; /* scanned */
	struct sb_sync_result *res;
	struct sb_step_clock *clock; /* of this change alone, or of the run it belongs to */
	unsigned offered;
	bool own;     /* what was here before comes back: project files are the user's */
	bool removes; /* saved versions go, nothing else happens: there is nothing to judge */
};

/*
 * Opens, locks and scans the root with the session's rules; finishes an interrupted commit first.
 * Starts the clock, which the close stops.
 */
int sb_session_local_open(struct sb_session_local *x, struct sb_error *err);
void sb_session_local_close(struct sb_session_local *x);

/*
 * The whole content of a file of the root; SB_E_NOTFOUND, SB_E_LIMIT, or SB_E_CHANGED when it is
 * not what the scan saw.
 */
int sb_session_local_read(struct sb_session_local *x, const char *path, size_t max,
	struct sb_buf *out, struct sb_error *err);

/* Puts content where the next apply finds it by its digest, and gives that digest back. */
int sb_session_local_offer(struct sb_session_local *x, const void *data, size_t len,
	struct sb_digest *out, struct sb_error *err);

/*
 * What the guard says about a change of the root to `target` (finished): the difference in `d`, the
 * verdicts in `out`, both zeroed by the caller.
 */
int sb_session_local_judge(struct sb_session_local *x, const struct sb_manifest *target,
	struct sb_diff *d, struct sb_guard_verdicts *out, struct sb_error *err);

/*
 * Makes the root what `target` (finished) says, with contents that the root has or that were
 * offered. With opts.dry_run only lists the changes. Leaves alone what changed since the scan, and
 * notes it in the result. SB_E_BRAKE when the guard refuses any of it.
 */
int sb_session_local_apply(struct sb_session_local *x, const struct sb_manifest *target,
	struct sb_error *err);

#endif
