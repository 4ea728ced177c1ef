/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HEALTH_H
#define SB_HOST_HEALTH_H

#include <sb/host.h>

/*
 * Whether the storage has room for one more session or snapshot: SB_E_POOL_FULL at its critical
 * mark, SB_E_UNAVAILABLE for a pool that does not work.
 */
int sb_host_health_admit(struct sb_host *h, struct sb_error *err);

#endif
