/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_BOUNDS_H
#define SB_HOST_HOST_BOUNDS_H

#include <sb/host.h>

/*
 * Tells the log what keeps sessions from the machine and from each other here, and warns of what
 * does not: at every start, so that nobody takes it for granted.
 */
void sb_host_bounds_log(const struct sb_host *h);

#endif
