/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/connect.h>

static struct sb_transport *
start_child(const struct sb_sync_opts *o, struct sb_error *err)
{
	static const char *const own[] = { "/proc/self/exe", "agent", NULL };

	return sb_transport_child(o->agent ? o->agent : own, err);
}

struct sb_link *
sb_connect(const struct sb_endpoint *e, const struct sb_sync_opts *o, struct sb_error *err)
{
	struct sb_wire_opts wo = SB_WIRE_OPTS_INIT;
	struct sb_transport *t;

	if (e->kind != SB_ENDPOINT_LOCAL) {
		sb_fail(err, SB_E_UNSUPPORTED, "%s: remote endpoints are not built in", e->host);
		return NULL;
	}
	t = start_child(o, err);
	if (!t)
		return NULL;
	wo.cancel = o->cancel;
	wo.stall_ms = o->stall_ms;
	wo.bwlimit = o->bwlimit;
	return sb_link_new(t, &wo, err);
}
