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

#endif
