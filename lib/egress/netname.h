/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_NETNAME_H
#define SB_EGRESS_NETNAME_H

#include <stdbool.h>
#include <stddef.h>

#define SB_NETNAME_MAX 254 /* with the NUL */
/* The host's own 127.0.0.1, by a name that a session can use. */
#define SB_NETNAME_HOST "host.sandbox.internal"

/*
 * Lower case without a dot at the end into `out`; false for what is no name of a host: empty or
 * long labels, other characters than letters, digits, '-' and '_', or a last label that is a number
 * (which some programs would take for an address).
 */
bool sb_netname_check(const char *name, size_t len, char out[SB_NETNAME_MAX]);

#endif
