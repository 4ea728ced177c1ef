/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_COND_H
#define SB_BASE_COND_H

#include <pthread.h>

#include <sb/cancel.h>

/*
 * Conditions that are waited for until a deadline. They go by the clock of deadlines: who waits by
 * the time of day waits an hour longer when that is put back by an hour.
 */
void sb_cond_init(pthread_cond_t *c);

/* Of one made by sb_cond_init; with `mu` held. May return earlier, as pthread_cond_wait does. */
void sb_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *mu, sb_deadline d);

#endif
