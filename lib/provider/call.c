/* SPDX-License-Identifier: MIT */
/* The limits of one call: its deadline and its cancel token (declared in sb/sandbox.h). */
#include "config.h"

#include <sb/sandbox.h>

int
sb_call_check(const struct sb_call *call, const char *what, struct sb_error *err)
{
	return call ? sb_check_alive(call->cancel, call->deadline, what, err) : 0;
}

struct sb_call
sb_call_within(const struct sb_call *call, int64_t ms)
{
	struct sb_call c = SB_CALL_INIT;

	if (call)
		c = *call;
	c.deadline = sb_deadline_min(c.deadline, sb_deadline_in(ms));
	return c;
}
