/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_STEP_H
#define SBSYNC_STEP_H

#include <stdint.h>

#include <sbsync/sync.h>

/*
 * Measures the steps of a run (enum sb_step): the thread that drives the run says which step it
 * enters, and the time until it enters the next one is added to phases_ms of the result. So the
 * steps never overlap and together make up the time between start and stop.
 */
struct sb_step_clock {
	struct sb_sync_result *res;
	enum sb_step step;
	int64_t since; /* ms */
};

void sb_step_start(struct sb_step_clock *c, struct sb_sync_result *res, enum sb_step first);
/* Ends the current step and enters `next`. */
void sb_step_next(struct sb_step_clock *c, enum sb_step next);
/* The current step turned out to be another one: all its time is counted as `step`. */
void sb_step_was(struct sb_step_clock *c, enum sb_step step);
/* Ends the current step. */
void sb_step_stop(struct sb_step_clock *c);

#endif
