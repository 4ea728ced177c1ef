/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_AUTH_H
#define SB_RPC_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/error.h>
#include <sb/rpc-daemon.h>

enum sb_rpc_role {
	SB_RPC_ROLE_NONE,
	SB_RPC_ROLE_MONITOR, /* health and metrics */
	SB_RPC_ROLE_SESSION, /* what names one session, and that is its own */
	SB_RPC_ROLE_ADMIN,   /* everything */
};

const char *sb_rpc_auth_role_name(enum sb_rpc_role r);

#define SB_RPC_WHO_NAME_MAX 64
#define SB_RPC_WHO_SESSION_MAX 128
#define SB_RPC_WHO_NONCE_MAX 64

/* Who calls. A value. */
struct sb_rpc_who {
	enum sb_rpc_role role;
	char name[SB_RPC_WHO_NAME_MAX];
	char session[SB_RPC_WHO_SESSION_MAX + 1]; /* SESSION: the only one allowed */
	char nonce[SB_RPC_WHO_NONCE_MAX + 1]; /* SESSION by an issued token: of the one session of
						 that id that is meant; "": any */
};

/*
 * The bearer tokens a server takes. Only their digests are kept; every comparison takes the same
 * time whatever matches. Fill before the server starts; read-only and thread-safe then.
 */
struct sb_rpc_auth;

struct sb_rpc_auth *sb_rpc_auth_new(struct sb_error *err);
void sb_rpc_auth_free(struct sb_rpc_auth *a);
SB_CLEANUP_PTR(sb_rpc_auth, sb_rpc_auth_free)

/* SB_RPC_TOKEN_MIN to SB_RPC_TOKEN_MAX printable ASCII bytes. `session` is for SB_RPC_ROLE_SESSION
 * only. */
int sb_rpc_auth_add(struct sb_rpc_auth *a, const char *name, enum sb_rpc_role role,
	const char *session, const char *token, struct sb_error *err);
/* The same by the lower-case hex SHA-256 of the token. */
int sb_rpc_auth_add_sha256(struct sb_rpc_auth *a, const char *name, enum sb_rpc_role role,
	const char *session, const char *hex, struct sb_error *err);
/* The number of tokens; a key for issued ones does not count. */
size_t sb_rpc_auth_count(const struct sb_rpc_auth *a);

/* The key (at least 32 bytes) that issued session tokens are made and checked with. */
int sb_rpc_auth_set_key(struct sb_rpc_auth *a, const void *key, size_t len, struct sb_error *err);

/*
 * A token for one session, valid until `expires_s` (Unix time):
 * "sbs2.<session>.<nonce>.<expires>.<HMAC-SHA256>". `nonce` (lower-case hex digits) tells the
 * session from others that had or will have its id. SB_E_UNSUPPORTED without a key. `out` holds
 * SB_RPC_ISSUED_MAX bytes.
 */
#define SB_RPC_ISSUED_MAX 384
int sb_rpc_auth_issue(const struct sb_rpc_auth *a, const char *session, const char *nonce,
	int64_t expires_s, char *out, struct sb_error *err);

/* Checks the value of an Authorization header (NULL: none given). SB_E_AUTH without saying why. */
int sb_rpc_auth_check(const struct sb_rpc_auth *a, const char *header, int64_t now_s,
	struct sb_rpc_who *out, struct sb_error *err);

#endif
