/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_RULES_H
#define SBSYNC_SESSION_RULES_H

#include <base/buf.h>
#include <sbsync/session.h>
#include <sync/scan/rules.h>

/*
 * The exclude rules that were frozen when a session began, from its folder: those of pair `k`.
 * Nothing else knows them: when they are damaged or gone, the error says how to begin anew. `enc`
 * (may be NULL; initialised here, the caller frees it) gets them as they were sent. The caller
 * frees the rules.
 */
struct sb_rules *sb_session_rules_load(const struct sb_session *s, int dirfd, size_t k,
	struct sb_buf *enc, struct sb_error *err);

/*
 * The rules of one run. Those of the session, as it was started and as `sbsync ignore` changed
 * them; the .sbsyncignore files as they are now, which the scan adds; and the patterns of `o`, for
 * this run alone. What comes to be excluded stays where it is on both sides and leaves the base,
 * what is no longer excluded is compared anew: a change of rules never deletes anything.
 */
struct sb_session_rules {
	struct sb_rules *rules;       /* the caller's, who frees them */
	size_t own[SB_RULES_SOURCES]; /* how many of each source are the session's; by
					 sb_rules_source */
	bool extra;                   /* there are patterns for this run alone */
};
int sb_session_rules_for_run(const struct sb_session *s, int dirfd, size_t k,
	const struct sb_sync_opts *o, struct sb_session_rules *out, struct sb_error *err);
/* Puts the session's part of them on record, with the .sbsyncignore files that the scan found. */
int sb_session_rules_save(int dirfd, size_t k, const struct sb_session_rules *x,
	struct sb_error *err);

#endif
