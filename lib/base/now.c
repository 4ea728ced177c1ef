/* SPDX-License-Identifier: MIT */
/* The clock that deadlines are measured with (declared in sb/cancel.h). */
#include "config.h"

#include <sb/cancel.h>

#include <time.h>

int64_t
sb_now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
