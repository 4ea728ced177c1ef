/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_HOST_H
#define SB_RPC_HOST_H

#include <stddef.h>

#include <rpc/server/auth.h>
#include <rpc/server/server.h>
#include <sb/host.h>

/*
 * The service rpc.v1.SandboxService (doc/sandbox.proto) over a sandbox host. Made before the host
 * is opened, as it takes the host's events: give sb_rpc_host_on_event and this object in the host's
 * options, then attach the host. Outlives the server and the host.
 */
struct sb_rpc_host;

/* `auth` (borrowed, may be NULL) issues session tokens. `max_message` is the server's. */
struct sb_rpc_host *sb_rpc_host_new(const struct sb_rpc_auth *auth, size_t max_message,
	struct sb_error *err);
void sb_rpc_host_free(struct sb_rpc_host *h);
void sb_rpc_host_use(struct sb_rpc_host *h, struct sb_host *host);
/* Remembers calls of tools over a restart, in the file `path`. Before the server starts. */
int sb_rpc_host_remember(struct sb_rpc_host *h, const char *path, struct sb_error *err);
/* Keeps tokens for SSH (access.h) in this directory. Before the service starts. */
struct sb_rpc_access;
int sb_rpc_host_keep_access(struct sb_rpc_host *h, const char *dir, struct sb_error *err);
struct sb_rpc_access *sb_rpc_host_access(struct sb_rpc_host *h);
/* An sb_host_event_fn; `arg` is the struct sb_rpc_host. */
void sb_rpc_host_on_event(const struct sb_host_event *ev, void *arg);
const struct sb_rpc_service *sb_rpc_host_service(const struct sb_rpc_host *h);

#endif
