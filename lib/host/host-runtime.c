/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-runtime.h>

#include <host/host-network.h>
#include <host/host-priv.h>

struct sb_runtime *
sb_host_runtime_get(struct sb_host *h, enum sb_host_runtime kind, struct sb_error *err)
{
	const struct sb_runtime_opts o = { .host = &h->o,
		.key = h->key,
		.on_network = sb_host_network_event,
		.network_arg = h };
	struct sb_runtime *rt;

	if (kind == SB_HOST_RUNTIME_AUTO || (h->rt && h->rt->ops->kind == kind))
		return h->rt;
	(void)pthread_mutex_lock(&h->rt_mu);
	rt = h->rts[kind];
	if (!rt)
		rt = h->rts[kind] = sb_runtime_open(kind, &o, err);
	(void)pthread_mutex_unlock(&h->rt_mu);
	return rt;
}

enum sb_host_network
sb_host_runtime_network(const struct sb_host *h, const struct sb_runtime *rt,
	enum sb_host_network asked)
{
	if (asked == SB_HOST_NET_DEFAULT)
		asked = h->o.default_network;
	if (asked == SB_HOST_NET_DEFAULT)
		asked = rt->ops->isolates ? SB_HOST_NET_NONE : SB_HOST_NET_HOST;
	return asked;
}

struct sb_runtime *
sb_host_runtime_for(struct sb_host *h, const struct sb_host_create_opts *o, struct sb_error *err)
{
	enum sb_host_network net = o->network ? o->network : h->o.default_network;
	struct sb_runtime *rt;

	if ((unsigned)o->runtime > SB_HOST_RUNTIME_AUTO ||
		(unsigned)o->network > SB_HOST_NET_OUTBOUND) {
		(void)sb_fail(err, SB_E_INVAL, "runtime %d or network %d is not one",
			(int)o->runtime, (int)o->network);
		return NULL;
	}
	if (o->runtime != SB_HOST_RUNTIME_AUTO && o->runtime < h->rt->ops->kind) {
		(void)sb_fail(err, SB_E_DENIED, "runtime %s isolates less than this host's %s",
			sb_host_runtime_name(o->runtime), h->rt->ops->name);
		return NULL;
	}
	rt = sb_host_runtime_get(h, o->runtime, err);
	return rt && sb_runtime_network_check(rt, &h->o, net, err) == 0 ? rt : NULL;
}

void
sb_host_runtime_close_all(struct sb_host *h)
{
	for (int i = 0; i < SB_HOST_RUNTIME_AUTO; i++)
		if (h->rts[i])
			h->rts[i]->ops->close(h->rts[i]);
	if (h->rt)
		h->rt->ops->close(h->rt);
}
