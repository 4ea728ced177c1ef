/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_INFLOW_H
#define SBSYNC_INFLOW_H

#include <sync/replica/receive.h>
#include <sync/wire/wire.h>

/*
 * Reads the data stream from the wire into a receiver: DATA blocks go through the tar reader; it
 * takes ROWS in between (and PLAN pieces, with `plans`) as they come. Call it with the payload of
 * the first DATA frame; it returns after DATA_END.
 */
int sb_inflow_run(struct sb_wire *w, struct sb_receive *r, bool plans, const uint8_t *first,
	size_t first_len, struct sb_error *err);

/* Takes the first payload of a PLAN blob, reads the rest of it, hands it to the receiver. */
int sb_inflow_plan(struct sb_wire *w, struct sb_receive *r, const uint8_t *first, size_t first_len,
	struct sb_error *err);

#endif
