/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_ACCESS_H
#define SB_RPC_ACCESS_H

#include <base/cleanup.h>
#include <sb/host.h>

/*
 * Tokens that let into one session by SSH and do nothing else. Each is on record as a file with its
 * digest, so it outlives the daemon, and can be withdrawn; the token itself is told once. The one
 * of a session that is gone opens nothing. Thread-safe.
 */
struct sb_rpc_access;

#define SB_RPC_ACCESS_EACH_MAX 64 /* of a session */
#define SB_RPC_ACCESS_ID 16
#define SB_RPC_ACCESS_TOKEN 44 /* "ssh-" and 40 hex digits */

struct sb_rpc_access_entry {
	char id[SB_RPC_ACCESS_ID + 1];
	char session[SB_HOST_ID_MAX + 1];
	char nonce[SB_HOST_NONCE_LEN + 1]; /* of the session */
	int64_t created_s, expires_s;      /* Unix time */
};

/* Reads what is in the directory `dir`, which is made when there is none. */
struct sb_rpc_access *sb_rpc_access_open(const char *dir, struct sb_error *err);
void sb_rpc_access_close(struct sb_rpc_access *a);
SB_CLEANUP_PTR(sb_rpc_access, sb_rpc_access_close)

/* SB_E_LIMIT: the session has SB_RPC_ACCESS_EACH_MAX that are good. */
int sb_rpc_access_create(struct sb_rpc_access *a, const char *session, const char *nonce,
	int64_t ttl_s, struct sb_rpc_access_entry *out, char token[SB_RPC_ACCESS_TOKEN + 1],
	struct sb_error *err);
/* Those that are good, oldest first; freed by the caller. */
int sb_rpc_access_list(struct sb_rpc_access *a, const char *session, const char *nonce,
	struct sb_rpc_access_entry **out, size_t *out_n, struct sb_error *err);
/* `id` NULL: all of the session. SB_E_NOTFOUND: there is none of that id. */
int sb_rpc_access_revoke(struct sb_rpc_access *a, const char *session, const char *id,
	struct sb_error *err);
/* Which session the token opens now; SB_E_AUTH: none. */
int sb_rpc_access_check(struct sb_rpc_access *a, const char *token, struct sb_rpc_access_entry *out,
	struct sb_error *err);

#endif
