/* SPDX-License-Identifier: MIT */
/* Access tokens for the SSH gateway: made, looked up by their digests, taken back. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>

#include <base/str.h>
#include <compat/daytona/daytona-priv.h>
#include <host/host.h>

#define TOKEN_LEN 32
#define MINUTES_DEFAULT 60
#define MINUTES_MAX (30 * 24 * 60)

static bool
digest_of(const char *token, char out[65])
{
	uint8_t sum[32];

	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, token, strlen(token), sum) != 0)
		return false;
	(void)sb_str_hex(sum, sizeof sum, out);
	return true;
}

/* The record that the token opens. NULL: none. All are compared, whichever it is. */
static json_t *
find(struct sb_daytona *d, const char *token, int64_t *expires_ns)
{
	json_t *found = NULL, **v;
	int64_t now = sb_host_now_ns();
	char digest[65];
	size_t n;

	if (!digest_of(token, digest))
		return NULL;
	v = sb_records_all(d->records, &n);
	for (size_t i = 0; v && i < n; i++) {
		size_t k;
		json_t *one;

		json_array_foreach(json_object_get(v[i], "ssh"), k, one)
		{
			int64_t until = sb_daytona_number(one, "expiresNs");

			if (sb_keys_same(sb_daytona_text(one, "digest"), digest) && until > now &&
				!found) {
				found = json_incref(v[i]);
				*expires_ns = until;
			}
		}
		json_decref(v[i]);
	}
	free(v);
	return found;
}

static bool
lookup(const char *token, struct sb_access_grant *out, void *arg)
{
	int64_t until = 0;
	json_t *rec = find(arg, token, &until);

	if (!rec)
		return false;
	(void)snprintf(out->session, sizeof out->session, "%s", sb_daytona_text(rec, "id"));
	(void)snprintf(out->user, sizeof out->user, "%.32s", sb_daytona_text(rec, "user"));
	out->expires_s = until / 1000000000;
	json_decref(rec);
	return true;
}

static void
active(const char *session, void *arg)
{
	sb_daytona_enter(arg, session);
	sb_daytona_leave(arg, session);
}

void
sb_daytona_ssh_init(struct sb_daytona *d)
{
	d->access = (struct sb_access){ .lookup = lookup, .active = active, .arg = d };
}

const struct sb_access *
sb_daytona_access(struct sb_daytona *d)
{
	return &d->access;
}

/* "ssh -p PORT TOKEN@HOST", the port left out where it is SSH's own. */
static json_t *
command(const char *gateway, const char *token)
{
	const char *colon = strrchr(gateway, ':');

	if (!colon || strcmp(colon, ":22") == 0)
		return json_sprintf("ssh %s@%.*s", token,
			(int)(colon ? (size_t)(colon - gateway) : strlen(gateway)), gateway);
	return json_sprintf("ssh -p %s %s@%.*s", colon + 1, token, (int)(colon - gateway), gateway);
}

static int
create(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	const char *text = sb_query_get(q, "expiresInMinutes");
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]), *one;
	char token[TOKEN_LEN + 1], digest[65], id[SB_DAYTONA_ID_LEN + 1];
	int64_t minutes = MINUTES_DEFAULT, now = sb_host_now_ns(), end;
	int r = 0;

	if (!rec)
		return 0;
	if (!d->ssh_gateway)
		r = sb_daytona_refuse(call, 501,
			"this host has no SSH gateway: see --daytona-ssh-gateway in sbhostd(8)");
	else if (text && !sb_str_to_i64(text, 1, MINUTES_MAX, &minutes))
		r = sb_daytona_refuse(call, 400, "expiresInMinutes must be from 1 to %d",
			MINUTES_MAX);
	if (sb_rpc_http_answered(call)) {
		json_decref(rec);
		return r;
	}
	end = now + minutes * SB_DAYTONA_MINUTE;
	sb_daytona_uuid(id);
	r = sb_keys_make(token, TOKEN_LEN, err);
	if (r == 0 && !digest_of(token, digest))
		r = sb_fail(err, SB_E_SYS, "no digest");
	if (r == 0) {
		/* Earlier ones end. */
		one = json_pack("{s:s, s:s, s:I, s:I}", "id", id, "digest", digest, "createdNs",
			(json_int_t)now, "expiresNs", (json_int_t)end);
		r = sb_daytona_record_change(d, rec, json_pack("{s:[o]}", "ssh", one), err);
	}
	if (r == 0)
		r = sb_answer_json(call, 200,
			json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "id", id, "sandboxId",
				sb_daytona_text(rec, "id"), "token", token, "expiresAt",
				sb_answer_time(end), "createdAt", sb_answer_time(now), "updatedAt",
				sb_answer_time(now), "sshCommand", command(d->ssh_gateway, token)),
			err);
	explicit_bzero(token, sizeof token);
	json_decref(rec);
	return r;
}

/* One token, or all of them. */
static int
take_back(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	const char *token = sb_query_get(q, "token");
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]), *left, *one;
	char digest[65] = "";
	size_t i;
	int r;

	if (!rec)
		return 0;
	left = json_array();
	if (token && !digest_of(token, digest))
		digest[0] = '\0';
	json_array_foreach(json_object_get(rec, "ssh"), i,
		one) if (token && !sb_keys_same(sb_daytona_text(one, "digest"), digest))(void)
		json_array_append(left, one);
	r = sb_daytona_record_change(sb_rpc_call_arg(call), rec, json_pack("{s:o}", "ssh", left),
		err);
	if (r == 0)
		r = sb_daytona_show_answer(call, rec, err);
	json_decref(rec);
	return r;
}

static int
validate(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	const char *token = sb_query_get(q, "token");
	int64_t until = 0;
	json_t *rec, *o;

	if (!token || !*token)
		return sb_daytona_refuse(call, 400, "token is required");
	rec = find(sb_rpc_call_arg(call), token, &until);
	o = json_pack("{s:b, s:s}", "valid", rec != NULL, "sandboxId", sb_daytona_text(rec, "id"));
	json_decref(rec);
	return sb_answer_json(call, 200, o, err);
}

const struct sb_daytona_route sb_daytona_ssh_routes[] = {
	{ "POST", "/sandbox/*/ssh-access", create, SB_RPC_HTTP_NO_BODY, 0, NULL },
	{ "DELETE", "/sandbox/*/ssh-access", take_back, SB_RPC_HTTP_NO_BODY, 0, NULL },
	{ "GET", "/sandbox/ssh-access/validate", validate, SB_RPC_HTTP_NO_BODY, 0, NULL },
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};
