/* SPDX-License-Identifier: MIT */
/*
 * The network of a container whose policy has lists: the engine gives it none, and our own egress
 * proxy puts a gate on its namespace (doc/NETWORK.md). The proxy lives as long as the container.
 */
#include "config.h"

#include <provider/dockerlink.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <egress/egress-client.h>
#include <host/host-network.h>
#include <host/runtime/runtime.h>

bool
sb_dockerlink_net_lists(const struct sb_network *n)
{
	return n->allow_list.n || n->deny_list.n;
}

bool
sb_dockerlink_net_reaches(const struct sb_network *n)
{
	return n->allow_outbound || sb_dockerlink_net_lists(n);
}

static char *
find_proxy(struct sb_error *err)
{
	struct sb_host_opts ho = SB_HOST_OPTS_INIT;
	char *path = sb_runtime_helper_of(&ho, "sb-egress");

	if (!path)
		(void)sb_fail(err, SB_E_UNSUPPORTED, "sb-egress is not installed");
	return path;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sb_error probed;

static void
probe(void)
{
	sb_autofree char *proxy = find_proxy(&probed);

	if (proxy)
		(void)sb_egress_client_probe(proxy, &probed);
}

int
sb_dockerlink_net_check(struct sb_error *err)
{
	(void)pthread_once(&once, probe);
	if (probed.code && err)
		*err = probed;
	return probed.code;
}

static int
start(struct sb_dockerlink *l, const char *dir, const char *text, const struct sb_call *call,
	struct sb_error *err)
{
	struct sb_egress_client c = SB_EGRESS_CLIENT_INIT;
	sb_autofree char *proxy = find_proxy(err);
	sb_autofree char *mark = sb_str_printf(SB_DOCKERLINK_MARK "%s", l->id);
	struct sb_egress_client_opts o = { .program = proxy,
		.session = l->id,
		.dir = dir,
		.policy = text };
	char netns[64];
	int r = proxy ? 0 : SB_E_UNSUPPORTED;

	if (r == 0)
		r = mark ? sb_engine_pid(&l->engine, l->name, mark, call, &o.pid, err) :
			   sb_fail(err, SB_E_NOMEM, "out of memory");

	if (r == 0 && !o.pid)
		r = sb_fail(err, SB_E_NETWORK_POLICY,
			"the containers of %s run on another machine: lists of the network policy "
			"cannot be enforced there",
			l->engine.cli.words.v[0]);
	if (r == 0)
		r = sb_egress_client_start(&c, &o, netns, sizeof netns, err);
	if (r == 0)
		r = sb_egress_client_watch(&c, o.pid, err);
	if (r == 0)
		sb_egress_client_leave(&c);
	else
		sb_egress_client_stop(&c);
	return r;
}

int
sb_dockerlink_net_open(struct sb_dockerlink *l, const struct sb_network *n,
	const struct sb_call *call, struct sb_error *err)
{
	struct sb_egress_client c = SB_EGRESS_CLIENT_INIT;
	sb_autofree char *dir = sb_dockerlink_dir(l, true, err);
	sb_autofree char *text = NULL;
	size_t cut;
	int r;

	if (!dir)
		return err->code;
	r = sb_host_network_text(sb_strlist_borrow(&n->allow_list), n->allow_list.n,
		sb_strlist_borrow(&n->deny_list), n->deny_list.n, n->allow_outbound, &text, err);
	if (r < 0)
		return r;
	/* One that runs gets the lists of today. */
	if (sb_egress_client_connect(&c, dir, NULL) == 0) {
		r = sb_egress_client_policy(&c, text, &cut, err);
		sb_egress_client_leave(&c);
		return r;
	}
	return start(l, dir, text, call, err);
}

/* It goes with the container; asked once more, in case that it was started for one that is gone. */
void
sb_dockerlink_net_forget(struct sb_dockerlink *l)
{
	struct sb_egress_client c = SB_EGRESS_CLIENT_INIT;
	sb_autofree char *dir = l->lists ? sb_dockerlink_dir(l, false, NULL) : NULL;

	if (dir && sb_egress_client_connect(&c, dir, NULL) == 0)
		sb_egress_client_stop(&c);
}
