/* SPDX-License-Identifier: MIT */
/* Kind "node": the sessions of one sandbox host are its sandboxes. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <control/control-priv.h>
#include <control/hostsess.h>

struct node {
	struct sb_control base;
	struct sb_hostcall *host;
	char *template; /* of sandboxes that name none; NULL: they begin empty */
};

static struct sb_hostcall *
host_of(struct sb_control *c)
{
	return ((struct node *)c)->host;
}

static int
node_capabilities(struct sb_control *c, const struct sb_control_call *call,
	struct sb_control_caps *out, struct sb_error *err)
{
	return sb_hostsess_capabilities(host_of(c), call, out, NULL, err);
}

static int
node_create(struct sb_control *c, const struct sb_control_create_opts *given,
	const struct sb_control_call *call, struct sb_control_sandbox *out, struct sb_error *err)
{
	struct sb_control_create_opts o = *given;
	char id[SB_CONTROL_NEW_ID_MAX];
	int r;

	if (o.cpus > 0 || o.mem_mb)
		return sb_control_cannot(c, "limits of a single sandbox",
			"sbhostd limits all of them alike (--session-cpus, --session-mem); launch "
			"takes limits of a process",
			err);
	if (o.lifetime_ms)
		return sb_control_cannot(c, "lifetime of a single sandbox",
			"sbhostd has one for all (--max-session-duration)", err);
	if (!o.base)
		o.base = ((struct node *)c)->template;
	r = sb_control_request_id(o.key, id, err);
	return r < 0 ? r : sb_hostsess_create(host_of(c), id, &o, call, out, err);
}

static int
node_destroy(struct sb_control *c, const char *id, bool force, const struct sb_control_call *call,
	struct sb_error *err)
{
	return sb_hostsess_destroy(host_of(c), id, force, call, err);
}

static int
node_get(struct sb_control *c, const char *id, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err)
{
	return sb_hostsess_get(host_of(c), id, call, out, err);
}

static int
node_list(struct sb_control *c, const struct sb_control_filter *f,
	const struct sb_control_call *call, struct sb_control_sandbox **out, size_t *out_n,
	struct sb_error *err)
{
	return sb_hostsess_list(host_of(c), f, call, out, out_n, err);
}

static int
node_launch(struct sb_control *c, const struct sb_control_launch_opts *o,
	const struct sb_control_call *call, struct sb_control_process *out, struct sb_error *err)
{
	return sb_hostsess_launch(host_of(c), o, call, out, err);
}

static int
node_kill(struct sb_control *c, const char *id, const char *process, int sig,
	const struct sb_control_call *call, struct sb_error *err)
{
	return sb_hostsess_kill(host_of(c), id, process, sig, call, err);
}

static int
node_status(struct sb_control *c, const char *id, const char *process,
	const struct sb_control_call *call, struct sb_control_process *out, struct sb_error *err)
{
	return sb_hostsess_status(host_of(c), id, process, call, out, err);
}

static int
node_pause(struct sb_control *c, const char *id, bool deep, const struct sb_control_call *call,
	struct sb_error *err)
{
	if (deep)
		return sb_control_cannot(c, "deep pause", NULL, err);
	return sb_hostsess_pause(host_of(c), id, call, err);
}

static int
node_resume(struct sb_control *c, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	return sb_hostsess_resume(host_of(c), id, call, err);
}

static int
node_snapshot(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_call *call, struct sb_error *err)
{
	return sb_hostsess_snapshot(host_of(c), id, name, call, err);
}

static int
node_rollback(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_call *call, struct sb_error *err)
{
	return sb_hostsess_rollback(host_of(c), id, name, call, err);
}

static int
node_fork(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_create_opts *o, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err)
{
	char new_id[SB_CONTROL_NEW_ID_MAX];
	int r = sb_control_request_id(o->key, new_id, err);

	return r < 0 ? r : sb_hostsess_fork(host_of(c), id, name, new_id, o, call, out, err);
}

static void
node_close(struct sb_control *c)
{
	struct node *n = (struct node *)c;

	sb_hostcall_free(n->host);
	free(n->template);
	free(n);
}

static const struct sb_control_ops ops = {
	.version = SB_CONTROL_VERSION,
	.kind = "node",
	.capabilities = node_capabilities,
	.create = node_create,
	.destroy = node_destroy,
	.get = node_get,
	.list = node_list,
	.launch = node_launch,
	.kill = node_kill,
	.status = node_status,
	.pause = node_pause,
	.resume = node_resume,
	.snapshot = node_snapshot,
	.rollback = node_rollback,
	.fork = node_fork,
	.close = node_close,
};

static bool
is_url(const char *text)
{
	struct sb_hostcall *h = sb_hostcall_new(text, NULL, NULL, NULL);

	sb_hostcall_free(h);
	return h != NULL;
}

static bool
is_path(const char *text)
{
	return text[0] == '/';
}

static const struct sb_provider_option options[] = {
	{ .name = "url",
		.value = "http://HOST:PORT, https://HOST:PORT or unix:/PATH",
		.help = "where sbhostd listens",
		.check = is_url,
		.required = true },
	{ .name = "token_file",
		.value = "an absolute path",
		.help = "its bearer token",
		.check = is_path },
	{ .name = "ca_file",
		.value = "an absolute path",
		.help = "authorities that https is checked with",
		.check = is_path },
	{ .name = "base", .value = "BASE", .help = "base image of sandboxes that name none" },
	{ .name = NULL },
};

static struct sb_control *
node_open(const struct sb_control_open_opts *o, struct sb_error *err)
{
	const char *base = sb_strlist_get(o->options, "base");
	struct node *n = calloc(1, sizeof *n);
	bool whole;

	if (!n || sb_control_begin(&n->base, &ops, o, err) < 0) {
		free(n);
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	n->template = base ? strdup(base) : NULL;
	whole = !base || n->template;
	n->host = whole ? sb_hostcall_new(sb_strlist_get(o->options, "url"),
				  sb_strlist_get(o->options, "token_file"),
				  sb_strlist_get(o->options, "ca_file"), err) :
			  NULL;
	if (n->host)
		return &n->base;
	if (!whole)
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	sb_control_close(&n->base);
	return NULL;
}

const struct sb_control_kind sb_node_kind = { "node", options, node_open };
