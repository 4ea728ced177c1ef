/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_BOX_EGRESS_H
#define SB_HOST_BOX_EGRESS_H

#include <host/runtime/box.h>

/* The way out of boxes with network outbound: a gate and a proxy each (doc/NETWORK.md). */

struct sb_box_egress_policy; /* of a session, whether its box runs or not */

/*
 * All with `mu` of the box held. Start makes the gate: for a namespace that the box will join
 * (`netns` says where it is), or for that of the process of the box once there is one. Ready ties
 * the proxy to the process of the box. Again replaces a proxy that has gone.
 */
int sb_box_egress_start(struct sb_box_runtime *b, struct sb_box *box, struct sb_error *err);
int sb_box_egress_ready(struct sb_box_runtime *b, struct sb_box *box, struct sb_error *err);
int sb_box_egress_again(struct sb_box_runtime *b, struct sb_box *box, struct sb_error *err);
void sb_box_egress_end(struct sb_box *box);

/* With the runtime: what was kept for all sessions. */
void sb_box_egress_close(struct sb_box_runtime *b);

#endif
