/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_MOUNTED_H
#define SB_PROVIDER_MOUNTED_H

#include <sb/docker.h>
#include <sb/provider.h>

/*
 * A sandbox that works in the local directories themselves has nothing to sync. So that one can
 * still tell what it changed, and take that back (sb_mounted_undo of sb/docker.h), there is a copy
 * of the directories from before in STATE/undo/ID, and one from after it. Those of the last sandbox
 * of a directory are kept.
 */

/* Makes the copy from before. */
int sb_mounted_before(const struct sb_state *s, const char *state_dir, const struct sb_call *call,
	struct sb_sync_result *out, struct sb_error *err);
/* Tells what changed since and makes the copy from after; `dry_run`: only tells. */
int sb_mounted_after(const struct sb_state *s, const char *state_dir, bool dry_run,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err);
/* Forgets the copies. Not there is success. */
int sb_mounted_forget(const char *id, const char *state_dir, struct sb_error *err);

#endif
