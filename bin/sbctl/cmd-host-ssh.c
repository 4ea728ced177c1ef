/* SPDX-License-Identifier: MIT */
/* sbctl host ssh-access: tokens that let into a session by SSH. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/sbctl/host.h>

static void
show_created(const json_t *out)
{
	host_print_line(out, "Token");
}

static void
show_list(const json_t *out)
{
	static const struct host_column c[] = { { "ID", "ID" }, { "CreatedAt", "CREATED" },
		{ "ExpiresAt", "EXPIRES" } };

	host_print_table(json_object_get(out, "Accesses"), c, sizeof c / sizeof c[0]);
}

/* What it does is its second operand. */
static const struct host_verb actions[] = {
	{ .name = "create",
		.min_args = 2,
		.max_args = 2,
		.method = "CreateSshAccess",
		.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD(TIME, "TTL", ttl)),
		.show = show_created },
	{ .name = "list",
		.min_args = 2,
		.max_args = 2,
		.method = "ListSshAccess",
		.fields = FIELDS(FIELD_OPERAND("SessionID", 0)),
		.show = show_list },
	{ .name = "revoke",
		.min_args = 3,
		.max_args = 3,
		.method = "RevokeSshAccess",
		.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND("AccessID", 2)) },
};

static int
ssh_access(struct host_run *r, json_t *in, struct sb_error *err)
{
	const struct host_verb *v = NULL;

	json_decref(in);
	for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
		if (strcmp(r->args.v[1], actions[i].name) == 0)
			v = &actions[i];
	if (!v)
		return sb_fail(err, SB_E_USAGE, "%.40s: must be create, list or revoke",
			r->args.v[1]);
	if (r->args.n < v->min_args || r->args.n > v->max_args)
		return sb_fail(err, SB_E_USAGE, "%s takes %s", v->name,
			v->max_args == 3 ? "the id of a token" : "no more words");
	r->verb = v;
	in = host_request(v, &r->args, err);
	return in ? host_call_unary(r, in, err) : SB_E_USAGE;
}

const struct host_verb cmd_host_ssh_access = {
	.name = "ssh-access",
	.args = "SESSION create|list|revoke [ID]",
	.help = "make, list or withdraw tokens for ssh TOKEN@host",
	.opts = "ttl",
	.min_args = 2,
	.max_args = 3,
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0)),
	.run = ssh_access,
};
