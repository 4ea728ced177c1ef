/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_GATE_H
#define SB_EGRESS_GATE_H

#include <sys/types.h>

#include <sb/error.h>

/*
 * The gate of a session: a network namespace that is joined to the session's by one link, takes
 * every address for its own and hands every TCP connection to one listener (doc/NETWORK.md).
 */
#define SB_GATE_INSIDE4 "198.18.0.2"
#define SB_GATE_OUTSIDE4 "198.18.0.1"
#define SB_GATE_INSIDE6 "fd5b:6174:6500::2"
#define SB_GATE_OUTSIDE6 "fd5b:6174:6500::1"
#define SB_GATE_PROXY_PORT 3128

/*
 * Descriptors made in the gate; each -1 when closed. They keep the gate alive: closed, it goes, and
 * the link with it.
 */
struct sb_gate {
	int session; /* the session's namespace, for setns */
	int tcp4, tcp6;
	int udp4, udp6; /* port 53 */
	int packets;    /* copies of the first bytes of what is neither TCP nor DNS; -1: none */
};
#define SB_GATE_INIT \
	{ \
		-1, -1, -1, -1, -1, -1 \
	}

/*
 * Makes a gate for the network namespace of the process `pid`, or for a new one when it is 0, in a
 * child: the caller stays where it is. An ordinary user must be the one who made the process's user
 * namespace; a new one they cannot have. SB_E_UNSUPPORTED names what the kernel lacks. Forks, so
 * the program may have one thread only.
 */
int sb_gate_make(pid_t pid, struct sb_gate *out, struct sb_error *err);
void sb_gate_close(struct sb_gate *g);

#endif
