/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/connect.h>

#include <sync/deploy.h>
#include <sync/remote.h>

static struct sb_transport *
start_child(const struct sb_sync_opts *o, struct sb_error *err)
{
	static const char *const own[] = { "/proc/self/exe", "agent", NULL };

	return sb_transport_child(o->agent ? o->agent : own, err);
}

/* Connects, and starts the agent there. */
static struct sb_transport *
start_remote(const struct sb_endpoint *e, const struct sb_sync_opts *o, struct sb_error *err)
{
	static const char *const argv[] = { "agent", NULL };
	struct sb_remote_opts ro = SB_REMOTE_OPTS_INIT;
	struct sb_deploy_opts po = SB_DEPLOY_OPTS_INIT;
	sb_deadline d = sb_deadline_in(o->timeout_ms);
	struct sb_transport *t = NULL;
	struct sb_remote *r;

	ro.to = e;
	ro.port = o->port;
	ro.rsh = o->rsh;
	ro.config_file = o->ssh_config;
	ro.identities = &o->identity;
	ro.n_identities = o->identity ? 1 : 0;
	ro.known_hosts = o->known_hosts;
	ro.accept_new_host_key = o->accept_new_host_key;
	ro.ask = sb_ssh_ask_tty;
	ro.stall_ms = o->stall_ms;
	ro.cancel = o->cancel;
	ro.log = o->log;
	r = sb_remote_open(&ro, d, err);
	if (!r)
		return NULL;
	po.argv = argv;
	po.deadline = d;
	po.cancel = o->cancel;
	po.log = o->log;
	if (sb_deploy_open(r, &po, NULL, &t, err) < 0) {
		sb_remote_free(r);
		return NULL;
	}
	return sb_remote_own(r, t, err);
}

struct sb_link *
sb_connect(const struct sb_endpoint *e, const struct sb_sync_opts *o, struct sb_error *err)
{
	struct sb_wire_opts wo = SB_WIRE_OPTS_INIT;
	struct sb_transport *t;

	t = e->kind == SB_ENDPOINT_LOCAL ? start_child(o, err) : start_remote(e, o, err);
	if (!t)
		return NULL;
	wo.cancel = o->cancel;
	wo.stall_ms = o->stall_ms;
	wo.bwlimit = o->bwlimit;
	return sb_link_new(t, &wo, err);
}
