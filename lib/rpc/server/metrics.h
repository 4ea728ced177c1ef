/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_METRICS_H
#define SB_RPC_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <rpc/protocol/code.h>

/* Counters of a server: by method and code, and a histogram of durations by method. Lock-free. */
struct sb_rpc_metrics;

/* `names` (borrowed) are the methods' names; index `n` stands for calls of no method. */
struct sb_rpc_metrics *sb_rpc_metrics_new(const char *const *names, size_t n, struct sb_error *err);
void sb_rpc_metrics_free(struct sb_rpc_metrics *m);

/* A call of `method` has begun, or has ended after `us` microseconds. */
void sb_rpc_metrics_begin(struct sb_rpc_metrics *m, size_t method);
void sb_rpc_metrics_end(struct sb_rpc_metrics *m, size_t method, enum sb_rpc_code code, int64_t us);

enum sb_rpc_gauge {
	SB_RPC_GAUGE_CONNECTIONS, /* open now */
	SB_RPC_GAUGE_ACCEPTED,    /* since start */
	SB_RPC_GAUGE_BYTES_IN,
	SB_RPC_GAUGE_BYTES_OUT,
	SB_RPC_GAUGE_REFUSED,     /* calls over the cap */
	SB_RPC_GAUGE_TIMED_OUT,   /* connections ended for slowness */
	SB_RPC_GAUGE_DISCONNECTS, /* calls canceled because their client went away */
	SB_RPC_GAUGES,
};
void sb_rpc_metrics_add(struct sb_rpc_metrics *m, enum sb_rpc_gauge g, int64_t delta);
int64_t sb_rpc_metrics_get(const struct sb_rpc_metrics *m, enum sb_rpc_gauge g);

/* Appends Prometheus text. */
void sb_rpc_metrics_print(const struct sb_rpc_metrics *m, struct sb_buf *out);
/* "# HELP", "# TYPE" and, for a series without labels, its value. */
void sb_rpc_metrics_head(struct sb_buf *out, const char *name, const char *type, const char *help);
void sb_rpc_metrics_value(struct sb_buf *out, const char *name, const char *type, const char *help,
	double v);

#endif
