/* SPDX-License-Identifier: MIT */
/* The lists of a session's network: read from requests, changed, and told in answers. */
#include "config.h"

#include <string.h>

#include <egress/netpolicy.h>
#include <rpc/protocol/json.h>
#include <rpc/service/host-priv.h>

void
sb_rpc_host_network_lists(struct sb_rpc_fields *f, struct sb_strlist *allow,
	struct sb_strlist *deny, struct sb_host_create_opts *o)
{
	sb_rpc_field_list(f, "Allow", SB_NETPOLICY_ENTRIES, SB_NETPOLICY_ENTRY_MAX, allow);
	sb_rpc_field_list(f, "Deny", SB_NETPOLICY_ENTRIES, SB_NETPOLICY_ENTRY_MAX, deny);
	o->allow = (const char *const *)allow->v;
	o->n_allow = allow->n;
	o->deny = (const char *const *)deny->v;
	o->n_deny = deny->n;
}

void
sb_rpc_host_network_put(json_t *obj, const char *policy)
{
	json_t *allow = json_array(), *deny = json_array();

	while (*policy) {
		size_t n = strcspn(policy, "\n");
		bool refuses = strncmp(policy, "deny ", 5) == 0;
		size_t skip = refuses ? 5 : 6;

		if (n > skip)
			(void)json_array_append_new(refuses ? deny : allow,
				sb_rpc_json_text(policy + skip, n - skip));
		policy += n + (policy[n] == '\n');
	}
	(void)json_object_set_new_nocheck(obj, "Allow", allow);
	(void)json_object_set_new_nocheck(obj, "Deny", deny);
}

int
sb_rpc_host_set_network_policy(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	sb_auto(sb_strlist) struct sb_strlist allow = { 0 }, deny = { 0 };
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_rpc_fields f;
	const char *id;
	size_t cut = 0;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	sb_rpc_host_network_lists(&f, &allow, &deny, &o);
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0)
		r = sb_host_network_set(h->host, id, o.allow, o.n_allow, o.deny, o.n_deny, &cut,
			err);
	if (r < 0)
		return r;
	*out = json_object();
	sb_rpc_host_put_int(*out, "Cut", (int64_t)cut);
	return 0;
}
