/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_LOG_H
#define SBSYNC_SESSION_LOG_H

#include <sbsync/session.h>

/*
 * One line of the session's log, as JSON: time, reason, outcome, and the first changes by name. A
 * log that became long makes room: it is log.old then. Failure is ignored.
 */
void sb_session_log(int dirfd, const char *reason, int code, const struct sb_error *err,
	const struct sb_sync_result *res);

#endif
