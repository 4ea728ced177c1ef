/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_GATE_NET_H
#define SB_EGRESS_GATE_NET_H

#include <egress/gate.h>

/* The parts of a gate, each made in the network namespace that the process is in. */

/* In the session's namespace: takes away the link of a gate that has gone, if it is still there. */
int sb_gate_net_clear(struct sb_error *err);
/* In the gate: loopback, every address local, TCP to the listener, no answer to pings. */
int sb_gate_net_outside(struct sb_error *err);
/* In the gate: the sockets of `g`. */
int sb_gate_net_listen(struct sb_gate *g, struct sb_error *err);
/* In the gate: the link to the namespace `session`, still down. */
int sb_gate_net_link(int session, struct sb_error *err);
/* In the session's namespace, then in the gate: their ends of the link are up. */
int sb_gate_net_inside_up(struct sb_error *err);
int sb_gate_net_outside_up(struct sb_error *err);
/* In the session's namespace, after both: the addresses and the way out. */
int sb_gate_net_inside(struct sb_error *err);

#endif
