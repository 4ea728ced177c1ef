/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_ENV_PRIV_H
#define SB_RPC_ENV_PRIV_H

#include <jansson.h>
#include <stdatomic.h>

#include <sb/env.h>
#include <sb/rpc.h>

struct sb_env {
	struct sb_env_host *host;
	char *id;
	atomic_bool destroyed;
};

/* A client for one call, and back; a connection that works is used again. */
struct sb_rpc_client *sb_env_take(struct sb_env_host *h, struct sb_error *err);
void sb_env_give(struct sb_env_host *h, struct sb_rpc_client *c);

/* Unary; takes `in` over (NULL: out of memory). `out` may be NULL, else it is a new object. */
int sb_env_call(struct sb_env_host *h, const char *method, json_t *in,
	const struct sb_host_call *call, json_t **out, struct sb_error *err);

/* The fencing token of the call into the request, if it has one. */
void sb_env_fence(json_t *in, const struct sb_host_call *call);

/* {"SessionID": ...}, or SB_E_SESSION_NOT_FOUND once we destroyed it. */
json_t *sb_env_request(const struct sb_env *e, struct sb_error *err);

#endif
