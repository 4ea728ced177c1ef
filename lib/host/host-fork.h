/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_FORK_H
#define SB_HOST_HOST_FORK_H

#include <host/hsess.h>

struct sb_host;

/* For callers without slot and locks. */

/* A fork is gone or was never made: removes what only it needed of its origin. */
void sb_host_fork_forget(struct sb_host *h, const struct sb_hsess *fork);
/* Removes snapshot `name` of `p` if it was made to be forked and nobody needs it. */
void sb_host_fork_drop_snapshot(struct sb_host *h, struct sb_hsess *p, const char *name);

#endif
