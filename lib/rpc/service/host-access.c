/* SPDX-License-Identifier: MIT */
/* The procedures for tokens that let into a session by SSH. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <rpc/service/access.h>
#include <rpc/service/host-priv.h>

#define NS 1000000000LL
#define TTL_S 3600
#define TTL_MAX_S (30 * 86400)

/* The session of a request, and its nonce; `f` is read to its end by then. */
static int
which(struct sb_rpc_call *call, const struct sb_rpc_fields *f, const char *id, char *nonce,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_session s;
	int r = sb_rpc_host_fields_end(call, f, err);

	if (r == 0 && !h->access)
		r = sb_fail(err, SB_E_UNSUPPORTED, "this host keeps no SSH access tokens");
	if (r == 0)
		r = sb_host_session_get(h->host, id, false, &s, err);
	if (r < 0)
		return r;
	memcpy(nonce, s.nonce, sizeof s.nonce);
	sb_host_session_clear(&s);
	return 0;
}

static json_t *
entry_json(const struct sb_rpc_access_entry *e)
{
	json_t *o = json_object();

	sb_rpc_host_put(o, "ID", e->id);
	(void)json_object_set_new(o, "CreatedAt", sb_rpc_host_time_json(e->created_s * NS));
	(void)json_object_set_new(o, "ExpiresAt", sb_rpc_host_time_json(e->expires_s * NS));
	return o;
}

int
sb_rpc_host_create_ssh_access(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	char nonce[SB_HOST_NONCE_LEN + 1], token[SB_RPC_ACCESS_TOKEN + 1];
	struct sb_rpc_access_entry e;
	struct sb_rpc_fields f;
	int64_t ttl_s;
	const char *id;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	ttl_s = (sb_rpc_field_int(&f, "TTL", 0, TTL_MAX_S * NS) + NS - 1) / NS;
	r = which(call, &f, id, nonce, err);
	if (r == 0)
		r = sb_rpc_access_create(h->access, id, nonce, ttl_s > 0 ? ttl_s : TTL_S, &e, token,
			err);
	if (r < 0)
		return r;
	*out = json_object();
	sb_rpc_host_put(*out, "Token", token);
	explicit_bzero(token, sizeof token);
	(void)json_object_set_new(*out, "Access", entry_json(&e));
	return 0;
}

int
sb_rpc_host_list_ssh_access(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	char nonce[SB_HOST_NONCE_LEN + 1];
	struct sb_rpc_access_entry *v = NULL;
	struct sb_rpc_fields f;
	json_t *list;
	const char *id;
	size_t n = 0;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	r = which(call, &f, id, nonce, err);
	if (r == 0)
		r = sb_rpc_access_list(h->access, id, nonce, &v, &n, err);
	if (r < 0)
		return r;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, entry_json(&v[i]));
	free(v);
	*out = sb_rpc_host_wrap("Accesses", list);
	return 0;
}

int
sb_rpc_host_revoke_ssh_access(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	char nonce[SB_HOST_NONCE_LEN + 1];
	const char *id, *access;
	struct sb_rpc_fields f;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	access = sb_rpc_field_str(&f, "AccessID", SB_RPC_ACCESS_ID, 0);
	r = which(call, &f, id, nonce, err);
	if (r == 0)
		r = sb_rpc_access_revoke(h->access, id, access && *access ? access : NULL, err);
	if (r == 0)
		*out = json_object();
	return r;
}
