/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_STATE_H
#define SB_HOST_STATE_H

#include <stdbool.h>

#include <sb/host.h>

/* What can be asked of a session; the rows of the admission table in state.c. */
enum sb_host_op {
	SB_HOST_OP_TOOL,
	SB_HOST_OP_LAUNCH,
	SB_HOST_OP_PAUSE,
	SB_HOST_OP_RESUME,
	SB_HOST_OP_TURN,
	SB_HOST_OP_SNAPSHOT, /* create, delete, hold, release */
	SB_HOST_OP_READ,     /* list snapshots, diff, send */
	SB_HOST_OP_ROLLBACK,
	SB_HOST_OP_FORK,
	SB_HOST_OP_LABELS,
	SB_HOST_OP_DESTROY,
	SB_HOST_OP_DEEP_PAUSE,
	SB_HOST_OP_DEEP_RESUME,
	SB_HOST_OP_COLD, /* the rest of what a deep pause or resume began */
	SB_HOST_OPS,
};

/* Whether the transition is in the table. */
bool sb_host_state_may(enum sb_host_state from, enum sb_host_state to);

/*
 * Returns 0 when `op` may run in `state`, or may wait for the end of a passing state and ask again.
 * Else the error of that state, with the message of the contract and the id.
 */
int sb_host_state_admit(enum sb_host_op op, enum sb_host_state state, const char *id,
	struct sb_error *err);

/* True for a state that ends by itself, because something is under way. */
bool sb_host_state_passing(enum sb_host_state s);

/* The state of a name as the database holds it; false when there is no such name. */
bool sb_host_state_parse(const char *name, enum sb_host_state *out);

#endif
