/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_BOX_WATCH_H
#define SB_HOST_BOX_WATCH_H

#include <host/runtime/box.h>

/*
 * The memory limit of boxes without a control group for it: a thread adds up, several times a
 * second, what the processes of each box have for themselves, and kills the largest one of a box
 * that has too much. It comes a moment late: what a box takes in that moment is not limited.
 */

/* From now on, if the box needs it; once will do. The caller has the box's `mu`, not the list's. */
int sb_box_watch_add(struct sb_box_runtime *b, struct sb_box *box, struct sb_error *err);
/* How many processes of the box were killed. */
uint64_t sb_box_watch_ooms(struct sb_box_runtime *b, const struct sb_box *box);
void sb_box_watch_stop(struct sb_box_runtime *b);

#endif
