/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_ALARM_H
#define SB_COMPAT_ALARM_H

#include <stdint.h>

#include <base/cleanup.h>
#include <sb/error.h>

/*
 * A thread that does what is due, also if it became due while no daemon ran. `round` does it and
 * gives the Unix time in ns to look again; it is called at the start, then, and after each wake.
 */
struct sb_alarm;

struct sb_alarm *sb_alarm_start(int64_t (*round)(void *arg), void *arg, struct sb_error *err);
/* Something is to be due earlier now. NULL is allowed. */
void sb_alarm_wake(struct sb_alarm *a);
/* Waits for a round under way. NULL is allowed. */
void sb_alarm_stop(struct sb_alarm *a);

#endif
