/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-policy.h>

#include <stdlib.h>
#include <string.h>

#include <sync/scan/rules.h>

static const char *const names[] = { "both", "local", "runtime", "merge" };

bool
sb_session_conflict_of(const char *name, enum sb_session_conflict *out)
{
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(name, names[i]) == 0) {
			*out = (enum sb_session_conflict)i;
			return true;
		}
	return false;
}

const char *
sb_session_conflict_name(enum sb_session_conflict c)
{
	return (unsigned)c < sizeof names / sizeof names[0] ? names[c] : "both";
}

static enum sb_policy
policy_of(enum sb_session_conflict c)
{
	switch (c) {
	case SB_SESSION_TAKE_LOCAL: return SB_POLICY_LOCAL;
	case SB_SESSION_TAKE_RUNTIME: return SB_POLICY_RUNTIME;
	case SB_SESSION_MERGE: return SB_POLICY_MERGE;
	case SB_SESSION_AS_STARTED:
	case SB_SESSION_KEEP_BOTH: break;
	}
	return SB_POLICY_KEEP_BOTH;
}

int
sb_session_policies_make(const struct sb_session *s, enum sb_session_conflict asked,
	struct sb_session_policies *out, struct sb_error *err)
{
	int r = 0;

	memset(out, 0, sizeof *out);
	out->all = policy_of(asked == SB_SESSION_AS_STARTED ? s->conflict : asked);
	out->v = calloc(s->n_rules + 1, sizeof *out->v);
	if (!out->v)
		return sb_fail(err, SB_E_NOMEM, "conflict rules: out of memory");
	for (size_t i = 0; r == 0 && i < s->n_rules; i++) {
		out->v[i].policy = policy_of(s->rules[i].how);
		out->v[i].match = sb_rules_new(err);
		r = out->v[i].match ?
			sb_rules_add(out->v[i].match, SB_RULES_COMMAND, s->rules[i].pattern, err) :
			SB_E_NOMEM;
		out->n++;
	}
	if (r < 0)
		sb_session_policies_free(out);
	return r;
}

void
sb_session_policies_free(struct sb_session_policies *p)
{
	for (size_t i = 0; i < p->n; i++)
		sb_rules_free(p->v[i].match);
	free(p->v);
	memset(p, 0, sizeof *p);
}

bool
sb_session_policies_merge(const struct sb_session_policies *p)
{
	bool merge = p->all == SB_POLICY_MERGE;

	for (size_t i = 0; i < p->n; i++)
		merge = merge || p->v[i].policy == SB_POLICY_MERGE;
	return merge;
}

enum sb_policy
sb_session_policy_at(const char *path, void *arg)
{
	const struct sb_session_policies *p = arg;

	for (size_t i = p->n; i-- > 0;)
		if (sb_rules_excluded(p->v[i].match, path, false))
			return p->v[i].policy;
	return p->all;
}
