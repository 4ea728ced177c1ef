/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_RETENTION_H
#define SB_HOST_RETENTION_H

#include <host/hsess.h>

struct sb_host;

/* Which snapshots go, and their removal. The caller holds the session's slot in all three. */

/*
 * Marks the snapshots of `kind` beyond its limit (keep_turn, keep_named, keep_tool) and lets the
 * worker remove them, or removes them now when no worker runs. Held, pinned and forked snapshots
 * stay.
 */
void sb_host_retention_apply(struct sb_host *h, struct sb_hsess *s, enum sb_host_snap_kind kind);
/* Marks one snapshot for removal: callers do not see it any more. */
int sb_host_retention_mark(struct sb_host *h, struct sb_hsess *s, struct sb_snap *snap,
	struct sb_error *err);
/* Removes every snapshot that is marked (SB_INTENT_REMOVE). */
int sb_host_retention_purge(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);

#endif
