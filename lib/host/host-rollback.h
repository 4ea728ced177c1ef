/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_ROLLBACK_H
#define SB_HOST_HOST_ROLLBACK_H

#include <host/hsess.h>

struct sb_host;

/*
 * Finishes the rollback of a session in ROLLING_BACK to its recorded target. When the storage
 * refuses and changed nothing, the session goes back to `before`, else it is FAILED. The caller
 * holds the slot, or the host is not open yet.
 */
int sb_host_rollback_finish(struct sb_host *h, struct sb_hsess *s, enum sb_host_state before,
	struct sb_host_rolled *out, struct sb_error *err);

#endif
