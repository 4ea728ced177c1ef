/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_CONFLICTS_H
#define SBSYNC_SESSION_CONFLICTS_H

#include <base/cleanup.h>
#include <sbsync/session.h>
#include <sync/plan/reconcile.h>

SB_CLEANUP_VALUE(sb_session_saved_list, sb_session_saved_free)

/*
 * Adds the conflicts with a saved version to the session's list. `base` tells what both sides had
 * before. Failure is ignored.
 */
void sb_session_conflicts_add(int dirfd, const char *root, const struct sb_reconciled *rec,
	const struct sb_manifest *base);

/* Loads the list from the folder, without rows whose saved version is gone. */
int sb_session_conflicts_load(int dirfd, struct sb_session_saved_list *out, struct sb_error *err);

/* Brings the file of an older version up to date. */
int sb_session_conflicts_upgrade(int dirfd, struct sb_error *err);

#endif
