/* SPDX-License-Identifier: MIT */
/* Tells what this host can do (capabilities) and what it did since it was opened (stats). */
#include "config.h"

#include <host/host-bounds.h>
#include <host/host-map.h>
#include <host/host-cold.h>
#include <host/host-priv.h>

void
sb_host_stats(struct sb_host *h, struct sb_host_stats *out)
{
	sb_autofree struct sb_hsess **v = NULL;
	size_t n = 0;

	*out = (struct sb_host_stats){
		.created = h->created,
		.paused = h->paused,
		.resumed = h->resumed,
		.destroyed = h->destroyed,
		.forked = h->forked,
		.adopted = h->adopted,
		.recovered = h->recovered,
		.snapshots = h->snapshots,
		.snapshots_deleted = h->snapshots_deleted,
		.rollbacks = h->rollbacks,
		.turns = h->turns,
		.tools = h->tools,
		.tool_errors = h->tool_errors,
		.processes_launched = h->launched,
		.storage_commands = h->st->counters.commands,
		.storage_retries = h->st->counters.retries,
		.storage_errors = h->st->counters.errors,
	};
	if (sb_host_map_all(h, &v, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		struct sb_hsess *s = v[i];

		(void)pthread_mutex_lock(&s->mu);
		if (!s->gone) {
			out->sessions[s->state]++;
			out->active_tools += s->active_tools;
			for (size_t p = 0; p < s->n_procs; p++)
				out->running_processes += sb_host_proc_running(s->procs[p]);
		}
		(void)pthread_mutex_unlock(&s->mu);
		sb_hsess_unref(s);
	}
}

void
sb_host_capabilities(const struct sb_host *h, struct sb_host_capabilities *out)
{
	bool snaps = h->st->ops->snapshots;
	struct sb_error why = { 0 };

	*out = (struct sb_host_capabilities){
		.storage = h->st->ops->name,
		.storage_why = h->storage_why,
		.runtime = h->rt->ops->name,
		.snapshots = snaps,
		.rollback = snaps,
		.fork = snaps,
		.diff = snaps,
		.quota = h->st->ops->quota,
		.send_receive = snaps,
		.pause = true,
		.streaming_progress = true,
		.tier_routing = h->rt->ops->isolates,
		.isolation = h->rt->ops->isolates,
		.network_policy = h->rt->ops->network_policy,
		.ports = h->rt->ops->connect != NULL,
		.isolation_level = h->rt->ops->isolation,
		.limits = sb_host_bounds_limits(h->rt),
		.deep_pause = sb_host_cold_need(h, NULL) == 0,
		.concurrent_sessions = h->o.max_sessions,
		.max_session_ms = h->o.max_session_ms,
	};
	out->network_lists =
		sb_runtime_network_check(h->rt, &h->o, SB_HOST_NET_OUTBOUND, &why) == 0;
	if (!out->network_lists)
		(void)snprintf(out->network_why, sizeof out->network_why, "%.250s", why.msg);
}
