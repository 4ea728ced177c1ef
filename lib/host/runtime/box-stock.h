/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_BOX_STOCK_H
#define SB_HOST_BOX_STOCK_H

#include <base/child.h>
#include <host/runtime/cgroup.h>

struct sb_box_runtime;
struct sb_box;

/*
 * Control groups with a forker in them (base/forker.h), made ahead of the boxes that will need
 * them. Only for groups of version 1, where moving a process costs a grace period of the machine,
 * ten milliseconds and more; with version 2 the kernel lets processes begin in a group.
 */

/*
 * Gives the box a set of groups with the limits of its runtime, under its own name, and a forker.
 * False: there is none at the moment, and more are made for the next one.
 */
bool sb_box_stock_take(struct sb_box_runtime *b, struct sb_box *box);
/* What is left in stock goes. */
void sb_box_stock_stop(struct sb_box_runtime *b);

/* The forker of a box ends. */
void sb_box_stock_end_forker(struct sb_box *box);

#endif
