/* SPDX-License-Identifier: MIT */
/* Points in time by which a call must be done (declared in sb/cancel.h). */
#include "config.h"

#include <sb/cancel.h>

#include <limits.h>

sb_deadline
sb_deadline_in(int64_t ms)
{
	sb_deadline d;

	if (ms <= 0 || __builtin_add_overflow(sb_now_ms(), ms, &d))
		return SB_NEVER;
	return d;
}

int
sb_deadline_poll_ms(sb_deadline d)
{
	int64_t now;

	if (d == SB_NEVER)
		return -1;
	now = sb_now_ms();
	if (d <= now)
		return 0;
	return d > now + INT_MAX ? INT_MAX : (int)(d - now);
}

bool
sb_deadline_passed(sb_deadline d)
{
	return d != SB_NEVER && sb_now_ms() >= d;
}

sb_deadline
sb_deadline_min(sb_deadline a, sb_deadline b)
{
	return a < b ? a : b;
}
