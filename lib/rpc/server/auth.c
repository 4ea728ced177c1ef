/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/server/auth.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include <base/str.h>

#define DIGEST 32
#define PREFIX "sbs2."

struct token {
	uint8_t digest[DIGEST];
	struct sb_rpc_who who;
};

struct sb_rpc_auth {
	struct token *v;
	size_t n;
	uint8_t key[DIGEST];
	bool has_key;
};

const char *
sb_rpc_auth_role_name(enum sb_rpc_role r)
{
	switch (r) {
	case SB_RPC_ROLE_MONITOR: return "monitor";
	case SB_RPC_ROLE_SESSION: return "session";
	case SB_RPC_ROLE_ADMIN: return "admin";
	case SB_RPC_ROLE_NONE: break;
	}
	return "none";
}

struct sb_rpc_auth *
sb_rpc_auth_new(struct sb_error *err)
{
	struct sb_rpc_auth *a = calloc(1, sizeof *a);

	if (!a)
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	return a;
}

void
sb_rpc_auth_free(struct sb_rpc_auth *a)
{
	if (!a)
		return;
	gnutls_memset(a->key, 0, sizeof a->key);
	free(a->v);
	free(a);
}

size_t
sb_rpc_auth_count(const struct sb_rpc_auth *a)
{
	return a->n;
}

static int
add_digest(struct sb_rpc_auth *a, const char *name, enum sb_rpc_role role, const char *session,
	const uint8_t digest[DIGEST], struct sb_error *err)
{
	struct token *t;

	if (!name || !name[0] || strlen(name) >= SB_RPC_WHO_NAME_MAX)
		return sb_fail(err, SB_E_INVAL, "token name must have 1 to %d bytes",
			SB_RPC_WHO_NAME_MAX - 1);
	if (role == SB_RPC_ROLE_NONE)
		return sb_fail(err, SB_E_INVAL, "token %s has no role", name);
	if ((role == SB_RPC_ROLE_SESSION) != (session && session[0]))
		return sb_fail(err, SB_E_INVAL,
			"token %s: role session and a session id go together", name);
	if (session && strlen(session) > SB_RPC_WHO_SESSION_MAX)
		return sb_fail(err, SB_E_INVAL, "token %s: session id is longer than %d bytes",
			name, SB_RPC_WHO_SESSION_MAX);
	for (size_t i = 0; i < a->n; i++)
		if (memcmp(a->v[i].digest, digest, DIGEST) == 0)
			return sb_fail(err, SB_E_EXISTS, "tokens %s and %s are the same",
				a->v[i].who.name, name);
	t = reallocarray(a->v, a->n + 1, sizeof *t);
	if (!t)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	a->v = t;
	t += a->n++;
	*t = (struct token){ .who = { .role = role } };
	memcpy(t->digest, digest, DIGEST);
	(void)snprintf(t->who.name, sizeof t->who.name, "%s", name);
	(void)snprintf(t->who.session, sizeof t->who.session, "%s", session ? session : "");
	return 0;
}

int
sb_rpc_auth_add(struct sb_rpc_auth *a, const char *name, enum sb_rpc_role role, const char *session,
	const char *token, struct sb_error *err)
{
	size_t len = strlen(token);
	uint8_t digest[DIGEST];

	if (len < SB_RPC_TOKEN_MIN || len > SB_RPC_TOKEN_MAX)
		return sb_fail(err, SB_E_INVAL, "token %s must have %d to %d bytes, not %zu", name,
			SB_RPC_TOKEN_MIN, SB_RPC_TOKEN_MAX, len);
	for (size_t i = 0; i < len; i++)
		if (token[i] <= ' ' || token[i] > '~')
			return sb_fail(err, SB_E_INVAL,
				"token %s may hold printable ASCII without blanks only", name);
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, token, len, digest) != 0)
		return sb_fail(err, SB_E_SYS, "SHA-256 failed");
	return add_digest(a, name, role, session, digest, err);
}

int
sb_rpc_auth_add_sha256(struct sb_rpc_auth *a, const char *name, enum sb_rpc_role role,
	const char *session, const char *hex, struct sb_error *err)
{
	uint8_t digest[DIGEST];

	if (!sb_str_unhex(hex, digest, sizeof digest))
		return sb_fail(err, SB_E_INVAL, "token %s: sha256 must be 64 lower-case hex digits",
			name);
	return add_digest(a, name, role, session, digest, err);
}

int
sb_rpc_auth_set_key(struct sb_rpc_auth *a, const void *key, size_t len, struct sb_error *err)
{
	if (len < DIGEST)
		return sb_fail(err, SB_E_INVAL, "key for session tokens has %zu bytes, needs %d",
			len, DIGEST);
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, key, len, a->key) != 0)
		return sb_fail(err, SB_E_SYS, "SHA-256 failed");
	a->has_key = true;
	return 0;
}

static bool
is_nonce(const char *s)
{
	size_t len = strspn(s, "0123456789abcdef");

	return len > 0 && len <= SB_RPC_WHO_NONCE_MAX && s[len] == '\0';
}

int
sb_rpc_auth_issue(const struct sb_rpc_auth *a, const char *session, const char *nonce,
	int64_t expires_s, char *out, struct sb_error *err)
{
	uint8_t mac[DIGEST];
	int n;

	if (!a->has_key)
		return sb_fail(err, SB_E_UNSUPPORTED, "this host has no key for session tokens");
	if (!session[0] || strlen(session) > SB_RPC_WHO_SESSION_MAX)
		return sb_fail(err, SB_E_INVAL, "session id must have 1 to %d bytes",
			SB_RPC_WHO_SESSION_MAX);
	if (!is_nonce(nonce))
		return sb_fail(err, SB_E_INVAL, "session %s has no nonce", session);
	n = snprintf(out, SB_RPC_ISSUED_MAX, PREFIX "%s.%s.%" PRId64, session, nonce, expires_s);
	if (n < 0 || n + 2 + 2 * DIGEST > SB_RPC_ISSUED_MAX)
		return sb_fail(err, SB_E_INVAL, "session id is too long");
	if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, a->key, sizeof a->key, out, (size_t)n, mac) != 0)
		return sb_fail(err, SB_E_SYS, "HMAC failed");
	out[n] = '.';
	(void)sb_str_hex(mac, sizeof mac, out + n + 1);
	return 0;
}

/* Cuts the part behind the last dot off `s`; NULL when there is no dot. */
static char *
last_part(char *s)
{
	char *dot = strrchr(s, '.');

	if (!dot)
		return NULL;
	*dot = '\0';
	return dot + 1;
}

/* An issued token: the signature is checked before anything it says is looked at. */
static bool
check_issued(const struct sb_rpc_auth *a, const char *token, int64_t now_s, struct sb_rpc_who *out)
{
	char copy[SB_RPC_ISSUED_MAX];
	uint8_t got[DIGEST], want[DIGEST];
	const char *nonce, *session = copy + sizeof PREFIX - 1;
	int64_t expires;
	char *part;
	int n = snprintf(copy, sizeof copy, "%s", token);

	if (!a->has_key || n < 0 || (size_t)n >= sizeof copy || !(part = last_part(copy)) ||
		!sb_str_unhex(part, got, sizeof got))
		return false;
	if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, a->key, sizeof a->key, copy, strlen(copy), want) !=
			0 ||
		gnutls_memcmp(got, want, DIGEST) != 0)
		return false;
	if (!(part = last_part(copy)) || !sb_str_to_i64(part, 0, INT64_MAX, &expires) ||
		!(nonce = last_part(copy)) || !is_nonce(nonce))
		return false;
	if (expires <= now_s || !sb_str_starts(copy, PREFIX) ||
		strlen(session) > SB_RPC_WHO_SESSION_MAX)
		return false;
	*out = (struct sb_rpc_who){ .role = SB_RPC_ROLE_SESSION, .name = "issued" };
	memcpy(out->session, session, strlen(session) + 1);
	memcpy(out->nonce, nonce, strlen(nonce) + 1);
	return true;
}

int
sb_rpc_auth_check(const struct sb_rpc_auth *a, const char *header, int64_t now_s,
	struct sb_rpc_who *out, struct sb_error *err)
{
	const struct token *found = NULL;
	uint8_t digest[DIGEST];
	const char *token;

	if (!header)
		return sb_fail(err, SB_E_AUTH, "a bearer token is required");
	if (strncasecmp(header, "Bearer ", 7) != 0)
		return sb_fail(err, SB_E_AUTH, "authorization must be a bearer token");
	token = header + 7;
	if (strlen(token) > SB_RPC_TOKEN_MAX ||
		gnutls_hash_fast(GNUTLS_DIG_SHA256, token, strlen(token), digest) != 0)
		return sb_fail(err, SB_E_AUTH, "token is not valid");
	for (size_t i = 0; i < a->n; i++)
		if (gnutls_memcmp(a->v[i].digest, digest, DIGEST) == 0)
			found = &a->v[i];
	if (found) {
		*out = found->who;
		return 0;
	}
	if (check_issued(a, token, now_s, out))
		return 0;
	return sb_fail(err, SB_E_AUTH, "token is not valid");
}
