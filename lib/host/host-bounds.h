/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_BOUNDS_H
#define SB_HOST_HOST_BOUNDS_H

#include <host/runtime/runtime.h>
#include <sb/host-exec.h>

/*
 * Tells the log what keeps sessions from the machine and from each other here, and warns of what
 * does not: at every start, so that nobody takes it for granted.
 */
void sb_host_bounds_log(const struct sb_host *h);

/* sb_host_capabilities.limits of that runtime. */
const char *sb_host_bounds_limits(struct sb_runtime *rt);

/* SB_E_UNSUPPORTED: the operator asked for a limit that nothing here holds. */
int sb_host_bounds_check(const struct sb_host *h, struct sb_error *err);
/* The same for what a call asks for beyond that. */
int sb_host_bounds_call(const struct sb_host_opts *o, struct sb_runtime *rt,
	const struct sb_host_resources *res, struct sb_error *err);

#endif
