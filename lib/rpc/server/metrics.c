/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/server/metrics.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Upper bounds in microseconds; the last bucket is everything. */
static const int64_t bounds_us[] = { 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000,
	250000, 500000, 1000000, 2500000, 10000000, 60000000, 300000000 };
#define BOUNDS (sizeof bounds_us / sizeof bounds_us[0])

struct series {
	_Atomic uint64_t by_code[SB_RPC_CODES];
	_Atomic uint64_t bucket[BOUNDS + 1];
	_Atomic uint64_t sum_us;
	_Atomic int64_t in_flight;
};

struct sb_rpc_metrics {
	const char *const *names;
	size_t n;
	_Atomic int64_t gauges[SB_RPC_GAUGES];
	struct series series[];
};

static const struct {
	const char *name, *type, *help;
} gauges[SB_RPC_GAUGES] = {
	[SB_RPC_GAUGE_CONNECTIONS] = { "sbhostd_connections", "gauge", "Connections open now." },
	[SB_RPC_GAUGE_ACCEPTED] = { "sbhostd_connections_total", "counter",
		"Connections accepted." },
	[SB_RPC_GAUGE_BYTES_IN] = { "sbhostd_rpc_received_bytes_total", "counter",
		"Bytes of request bodies." },
	[SB_RPC_GAUGE_BYTES_OUT] = { "sbhostd_rpc_sent_bytes_total", "counter",
		"Bytes of response bodies." },
	[SB_RPC_GAUGE_REFUSED] = { "sbhostd_rpc_refused_total", "counter",
		"Calls refused because too many were running." },
	[SB_RPC_GAUGE_TIMED_OUT] = { "sbhostd_connections_timed_out_total", "counter",
		"Connections ended because the client was too slow." },
	[SB_RPC_GAUGE_DISCONNECTS] = { "sbhostd_rpc_disconnects_total", "counter",
		"Calls canceled because their client went away." },
};

struct sb_rpc_metrics *
sb_rpc_metrics_new(const char *const *names, size_t n, struct sb_error *err)
{
	struct sb_rpc_metrics *m = calloc(1, sizeof *m + (n + 1) * sizeof m->series[0]);

	if (!m) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	m->names = names;
	m->n = n;
	return m;
}

void
sb_rpc_metrics_free(struct sb_rpc_metrics *m)
{
	free(m);
}

void
sb_rpc_metrics_begin(struct sb_rpc_metrics *m, size_t method)
{
	atomic_fetch_add_explicit(&m->series[method].in_flight, 1, memory_order_relaxed);
}

void
sb_rpc_metrics_end(struct sb_rpc_metrics *m, size_t method, enum sb_rpc_code code, int64_t us)
{
	struct series *s = &m->series[method];
	size_t i = 0;

	while (i < BOUNDS && us > bounds_us[i])
		i++;
	atomic_fetch_add_explicit(&s->bucket[i], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->sum_us, (uint64_t)(us > 0 ? us : 0), memory_order_relaxed);
	atomic_fetch_add_explicit(&s->by_code[code], 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&s->in_flight, 1, memory_order_relaxed);
}

void
sb_rpc_metrics_add(struct sb_rpc_metrics *m, enum sb_rpc_gauge g, int64_t delta)
{
	atomic_fetch_add_explicit(&m->gauges[g], delta, memory_order_relaxed);
}

int64_t
sb_rpc_metrics_get(const struct sb_rpc_metrics *m, enum sb_rpc_gauge g)
{
	return atomic_load_explicit(&m->gauges[g], memory_order_relaxed);
}

void
sb_rpc_metrics_head(struct sb_buf *out, const char *name, const char *type, const char *help)
{
	sb_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void
sb_rpc_metrics_value(struct sb_buf *out, const char *name, const char *type, const char *help,
	double v)
{
	sb_rpc_metrics_head(out, name, type, help);
	sb_buf_addf(out, "%s %.17g\n", name, v);
}

static const char *
series_name(const struct sb_rpc_metrics *m, size_t i)
{
	return i < m->n ? m->names[i] : "";
}

static void
print_requests(const struct sb_rpc_metrics *m, struct sb_buf *out)
{
	const char *name = "sbhostd_rpc_requests_total";

	sb_rpc_metrics_head(out, name, "counter", "Calls ended, by method and code.");
	for (size_t i = 0; i <= m->n; i++)
		for (int c = 0; c < SB_RPC_CODES; c++) {
			uint64_t v = atomic_load_explicit(&m->series[i].by_code[c],
				memory_order_relaxed);

			if (v > 0 || (c == 0 && i < m->n))
				sb_buf_addf(out, "%s{method=\"%s\",code=\"%s\"} %" PRIu64 "\n",
					name, series_name(m, i),
					sb_rpc_code_name((enum sb_rpc_code)c), v);
		}
}

static void
print_durations(const struct sb_rpc_metrics *m, struct sb_buf *out)
{
	const char *name = "sbhostd_rpc_duration_seconds";

	sb_rpc_metrics_head(out, name, "histogram",
		"Time from the whole request to the whole answer.");
	for (size_t i = 0; i < m->n; i++) {
		const struct series *s = &m->series[i];
		uint64_t sum = 0;

		for (size_t b = 0; b <= BOUNDS; b++) {
			sum += atomic_load_explicit(&s->bucket[b], memory_order_relaxed);
			sb_buf_addf(out, "%s_bucket{method=\"%s\",le=\"", name, m->names[i]);
			if (b < BOUNDS)
				sb_buf_addf(out, "%g", (double)bounds_us[b] / 1e6);
			else
				sb_buf_add_str(out, "+Inf");
			sb_buf_addf(out, "\"} %" PRIu64 "\n", sum);
		}
		sb_buf_addf(out, "%s_sum{method=\"%s\"} %.6f\n", name, m->names[i],
			(double)atomic_load_explicit(&s->sum_us, memory_order_relaxed) / 1e6);
		sb_buf_addf(out, "%s_count{method=\"%s\"} %" PRIu64 "\n", name, m->names[i], sum);
	}
}

void
sb_rpc_metrics_print(const struct sb_rpc_metrics *m, struct sb_buf *out)
{
	const char *name = "sbhostd_rpc_in_flight";

	print_requests(m, out);
	sb_rpc_metrics_head(out, name, "gauge", "Calls running now.");
	for (size_t i = 0; i < m->n; i++)
		sb_buf_addf(out, "%s{method=\"%s\"} %" PRId64 "\n", name, m->names[i],
			atomic_load_explicit(&m->series[i].in_flight, memory_order_relaxed));
	print_durations(m, out);
	for (int g = 0; g < SB_RPC_GAUGES; g++) {
		sb_rpc_metrics_head(out, gauges[g].name, gauges[g].type, gauges[g].help);
		sb_buf_addf(out, "%s %" PRId64 "\n", gauges[g].name,
			sb_rpc_metrics_get(m, (enum sb_rpc_gauge)g));
	}
}
