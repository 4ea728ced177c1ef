/* SPDX-License-Identifier: MIT */
/* Writes the host's own numbers for /metrics. */
#include "config.h"

#include <inttypes.h>

#include <rpc/service/host-priv.h>

#define HEALTH_MS 2000 /* how long a scrape waits for the storage */

static void
counter(struct sb_buf *out, const char *name, const char *help, uint64_t v)
{
	sb_rpc_metrics_head(out, name, "counter", help);
	sb_buf_addf(out, "%s %" PRIu64 "\n", name, v);
}

static void
print_counters(const struct sb_host_stats *s, struct sb_buf *out)
{
	counter(out, "sbhostd_sessions_created_total", "Sessions created.", s->created);
	counter(out, "sbhostd_sessions_paused_total", "Sessions paused.", s->paused);
	counter(out, "sbhostd_sessions_resumed_total", "Sessions resumed.", s->resumed);
	counter(out, "sbhostd_sessions_destroyed_total", "Sessions destroyed.", s->destroyed);
	counter(out, "sbhostd_sessions_forked_total", "Sessions forked.", s->forked);
	counter(out, "sbhostd_sessions_adopted_total",
		"Sessions found in the storage and taken over.", s->adopted);
	counter(out, "sbhostd_sessions_recovered_total",
		"Interrupted operations finished at start.", s->recovered);
	counter(out, "sbhostd_snapshots_total", "Snapshots taken.", s->snapshots);
	counter(out, "sbhostd_snapshots_deleted_total",
		"Snapshots deleted, by request or retention.", s->snapshots_deleted);
	counter(out, "sbhostd_rollbacks_total", "Rollbacks.", s->rollbacks);
	counter(out, "sbhostd_turns_total", "Turns completed.", s->turns);
	counter(out, "sbhostd_tool_executions_total", "Tool calls run.", s->tools);
	counter(out, "sbhostd_tool_errors_total", "Tool calls whose result was an error.",
		s->tool_errors);
	counter(out, "sbhostd_processes_launched_total", "Processes launched.",
		s->processes_launched);
	counter(out, "sbhostd_storage_commands_total", "Commands given to the storage.",
		s->storage_commands);
	counter(out, "sbhostd_storage_retries_total", "Of them, tried again.", s->storage_retries);
	counter(out, "sbhostd_storage_errors_total", "Of them, failed.", s->storage_errors);
}

void
sb_rpc_host_metrics(void *arg, struct sb_buf *out)
{
	struct sb_rpc_host *h = arg;
	struct sb_host_call limits = { .deadline = sb_deadline_in(HEALTH_MS) };
	struct sb_host_stats s = { 0 };
	struct sb_host_health health = { 0 };

	sb_host_stats(h->host, &s);
	sb_host_health(h->host, &limits, &health);
	print_counters(&s, out);
	sb_rpc_metrics_head(out, "sbhostd_sessions", "gauge", "Sessions by state.");
	for (int i = 0; i < SB_HOST_STATES; i++)
		sb_buf_addf(out, "sbhostd_sessions{state=\"%s\"} %" PRIu64 "\n",
			sb_host_state_name((enum sb_host_state)i), s.sessions[i]);
	sb_rpc_metrics_value(out, "sbhostd_active_tools", "gauge", "Tool calls running.",
		(double)s.active_tools);
	sb_rpc_metrics_value(out, "sbhostd_running_processes", "gauge",
		"Launched processes running.", (double)s.running_processes);
	sb_rpc_metrics_value(out, "sbhostd_health", "gauge", "0 healthy, 1 degraded, 2 unhealthy.",
		(double)health.status);
	sb_rpc_metrics_value(out, "sbhostd_uptime_seconds", "gauge", "Since the host was opened.",
		(double)health.uptime_ms / 1000);
	sb_rpc_metrics_value(out, "sbhostd_storage_size_bytes", "gauge", "Size of the storage.",
		(double)health.size);
	sb_rpc_metrics_value(out, "sbhostd_storage_used_bytes", "gauge", "Used of it.",
		(double)health.used);
	sb_rpc_metrics_value(out, "sbhostd_storage_free_bytes", "gauge", "Free of it.",
		(double)health.free);
	sb_rpc_metrics_value(out, "sbhostd_storage_capacity_ratio", "gauge", "Used share, 0 to 1.",
		health.capacity);
}
