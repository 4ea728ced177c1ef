/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_SERVICE_DAEMON_H
#define SB_RPC_SERVICE_DAEMON_H

#include <sb/rpc-daemon.h>

/* For other services over the same host: it, from the start to the free. */
struct sb_host *sb_rpc_daemon_host(struct sb_rpc_daemon *d);
/* The tokens that it takes; as long as the daemon lives. */
const struct sb_rpc_auth *sb_rpc_daemon_auth(const struct sb_rpc_daemon *d);
/* The tokens for SSH that it keeps; from the start to the free. */
struct sb_rpc_access;
struct sb_rpc_access *sb_rpc_daemon_access(struct sb_rpc_daemon *d);

#endif
