/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_WATCHER_H
#define SBSYNC_SESSION_WATCHER_H

#include <sbsync/session.h>

/*
 * Puts this process on record as the one that watches. SB_E_LOCKED when another does. The
 * descriptor is the record: it is free again when it is closed, however the process ends.
 */
int sb_session_watcher_enter(const struct sb_session *s, const char *state_dir,
	struct sb_error *err);

#endif
