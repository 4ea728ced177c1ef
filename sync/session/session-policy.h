/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_POLICY_H
#define SBSYNC_SESSION_POLICY_H

#include <sbsync/session.h>
#include <sync/plan/reconcile.h>
#include <sync/scan/rules.h>

/* Which policy holds for which path: that of the session's rules, else one for all. */
struct sb_session_policies {
	enum sb_policy all;
	struct {
		struct sb_rules *match;
		enum sb_policy policy;
	} * v;
	size_t n;
};
int sb_session_policies_make(const struct sb_session *s, enum sb_session_conflict asked,
	struct sb_session_policies *out, struct sb_error *err);
void sb_session_policies_free(struct sb_session_policies *p);
/* May a pass merge anything? Then it has to keep the base's bytes. */
bool sb_session_policies_merge(const struct sb_session_policies *p);
/* `arg` is the struct sb_session_policies. */
enum sb_policy sb_session_policy_at(const char *path, void *arg);

#endif
