/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_WORK_H
#define SB_BASE_WORK_H

#include <sb/cancel.h>

/*
 * The cancel token of the work that a thread does just now. A peer decides how long many loops
 * over trees, lists and streams run; each of them asks sb_work_alive, so that a sync ends within a
 * moment wherever it is, and no function between here and there has to hand a token on.
 */

/*
 * From now on this thread works under `c` (NULL: nothing ends it). Returns what was in force
 * before, which the caller gives back with another call.
 */
const struct sb_cancel *sb_work_under(const struct sb_cancel *c);

/* 0 to go on, SB_E_CANCELED when the token was requested. Cheap enough for every entry of a tree.
 */
int sb_work_alive(struct sb_error *err);

#endif
