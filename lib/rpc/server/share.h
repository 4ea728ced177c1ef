/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_SHARE_H
#define SB_RPC_SHARE_H

#include <stddef.h>

#include <rpc/server/auth.h>

/*
 * What callers take of the server at a time: calls, streams, bytes of request bodies. A tenant (all
 * tokens of one session, or one monitor) gets a part of the whole, and all tenants together leave
 * some for admins, who are not counted. So nobody keeps others out, and no crowd keeps the operator
 * out. Thread-safe.
 */
struct sb_rpc_share;

enum sb_rpc_share_of {
	SB_RPC_SHARE_CALLS,   /* requests with one answer, from their header to its end */
	SB_RPC_SHARE_STREAMS, /* streams and connections that left HTTP */
	SB_RPC_SHARE_BYTES,   /* of request bodies being read */
	SB_RPC_SHARES,
};

struct sb_rpc_share_limit {
	size_t all; /* what the server has */
	size_t one; /* what one tenant may have of it; 0: an eighth */
};

struct sb_rpc_share *sb_rpc_share_new(const struct sb_rpc_share_limit limits[SB_RPC_SHARES],
	struct sb_error *err);
void sb_rpc_share_free(struct sb_rpc_share *s);

/* SB_E_LIMIT, in words for the caller, when its part or that of all tenants is used up. */
int sb_rpc_share_take(struct sb_rpc_share *s, const struct sb_rpc_who *who,
	enum sb_rpc_share_of what, size_t n, struct sb_error *err);
void sb_rpc_share_give(struct sb_rpc_share *s, const struct sb_rpc_who *who,
	enum sb_rpc_share_of what, size_t n);

#endif
