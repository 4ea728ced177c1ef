/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_ALIGN_H
#define SB_HOST_ALIGN_H

#include <host/hsess.h>

struct sb_host;

/*
 * Makes the records of a session's snapshots and holds agree with what the storage has. The caller
 * holds the slot, or the host is not open yet.
 */
int sb_host_align(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);

#endif
