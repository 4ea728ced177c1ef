/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_RESOLVE_H
#define SBSYNC_SESSION_RESOLVE_H

#include <sbsync/session.h>
#include <sync/tree/digest.h>
#include <sync/session/session-local.h>

/* One conflict of a root: two versions beside each other, and the base of both. */
struct sb_session_row {
	const char *path;
	const char *saved_as;
	struct sb_digest base; /* zero: not known */
	uint16_t base_mode;
};

/*
 * Decides these conflicts in one commit. Sets `done[i]` for each decided one (with SB_TAKE_MERGED:
 * those that merge cleanly) and returns their number.
 */
int sb_session_resolve_rows(struct sb_session_local *x, const struct sb_session_row *rows, size_t n,
	enum sb_session_take take, bool *done, struct sb_error *err);

#endif
