/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/run/step.h>

const char *
sb_step_name(enum sb_step step)
{
	static const char *const names[] = {
		[SB_STEP_CONNECT] = "connect",
		[SB_STEP_SCAN] = "scan",
		[SB_STEP_EXCHANGE] = "exchange",
		[SB_STEP_PLAN] = "plan",
		[SB_STEP_TRANSFER] = "transfer",
		[SB_STEP_STAGE] = "stage",
		[SB_STEP_VERIFY] = "verify",
		[SB_STEP_COMMIT] = "commit",
		[SB_STEP_RECORD] = "record",
	};

	return (unsigned)step < sizeof names / sizeof names[0] ? names[step] : "unknown";
}

void
sb_step_start(struct sb_step_clock *c, struct sb_sync_result *res, enum sb_step first)
{
	c->res = res;
	c->step = first;
	c->since = sb_now_ms();
}

void
sb_step_stop(struct sb_step_clock *c)
{
	int64_t now = sb_now_ms();

	c->res->phases_ms[c->step] += now - c->since;
	c->since = now;
}

void
sb_step_next(struct sb_step_clock *c, enum sb_step next)
{
	sb_step_stop(c);
	c->step = next;
}

void
sb_step_was(struct sb_step_clock *c, enum sb_step step)
{
	c->step = step;
}
