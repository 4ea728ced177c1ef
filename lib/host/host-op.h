/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_OP_H
#define SB_HOST_HOST_OP_H

#include <host/hsess.h>

struct sb_host;

/*
 * Every public call counts itself in and out, so that a close waits for it; the end also delivers
 * the events. With `work`, the beginning is refused once a shutdown began.
 */
int sb_host_call_begin(struct sb_host *h, bool work, struct sb_error *err);
void sb_host_call_end(struct sb_host *h);

/*
 * The way into an operation on a session: counts the call, finds the session, checks that there
 * are snapshots (unless `op` works without them), takes the slot. After success the caller ends
 * with sb_host_op_done, which returns `r`.
 */
int sb_host_op_start(struct sb_host *h, const char *id, enum sb_host_op op, bool work,
	const struct sb_host_call *call, struct sb_hsess **out, struct sb_error *err);
int sb_host_op_done(struct sb_host *h, struct sb_hsess *s, int r);

/*
 * Moves the session to a state: database first, then memory, then an event. The caller holds the
 * session's `mu`. SB_E_INVALID_STATE when the table of state.c lacks the transition.
 */
int sb_host_op_set_state(struct sb_host *h, struct sb_hsess *s, enum sb_host_state to, bool durable,
	struct sb_error *err);

#endif
