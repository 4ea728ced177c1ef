/* SPDX-License-Identifier: MIT */
/* Conditions that are waited for until a deadline. */
#include "config.h"

#include <base/cond.h>

#include <time.h>

void
sb_cond_init(pthread_cond_t *c)
{
	pthread_condattr_t a;

	(void)pthread_condattr_init(&a);
	(void)pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	(void)pthread_cond_init(c, &a);
	(void)pthread_condattr_destroy(&a);
}

void
sb_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *mu, sb_deadline d)
{
	const struct timespec ts = { .tv_sec = d / 1000, .tv_nsec = d % 1000 * 1000000 };

	if (d == SB_NEVER)
		(void)pthread_cond_wait(c, mu);
	else
		(void)pthread_cond_timedwait(c, mu, &ts);
}
