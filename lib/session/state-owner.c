/* SPDX-License-Identifier: MIT */
/* Which process works with a sandbox (sb_state_owned is declared in sb/session.h). */
#include "config.h"

#include <session/session-priv.h>

#include <unistd.h>

#include <base/procid.h>

void
sb_state_own(struct sb_state *s, bool own)
{
	s->owner_pid = own ? getpid() : 0;
	s->owner_start = own ? (uint64_t)sb_procid_start((pid_t)s->owner_pid) : 0;
}

bool
sb_state_owned(const struct sb_state *s)
{
	return s->owner_start > 0 &&
		(uint64_t)sb_procid_start((pid_t)s->owner_pid) == s->owner_start;
}
