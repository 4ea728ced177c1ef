/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_SERVICE_DAEMON_H
#define SB_RPC_SERVICE_DAEMON_H

#include <sb/rpc-daemon.h>

/* For other services over the same host: it, from the start to the free. */
struct sb_host *sb_rpc_daemon_host(struct sb_rpc_daemon *d);

#endif
