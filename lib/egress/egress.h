/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_EGRESS_H
#define SB_EGRESS_EGRESS_H

#include <egress/gate.h>
#include <egress/lookup.h>
#include <egress/netpolicy.h>
#include <sb/cancel.h>
#include <sb/error.h>

/*
 * The egress proxy of one session (doc/NETWORK.md): takes the connections and questions that come
 * to its gate, decides by the policy, and connects on from where it is itself. One thread, one
 * epoll loop; memory is bounded by the limits below.
 *
 * Who holds the control socket speaks lines and gets lines of JSON:
 *     policy BYTES\n...   the new policy, as sb_netpolicy_parse reads it; {"ok":true,"cut":N}
 *     watch PID\n         ends when that process ends; {"ok":true}
 *     events [SEQ]\n      every decision after number SEQ, from now on, one line each
 *     stats\n             {"connections":N,...}
 *     quit\n
 * and {"error":"..."} for what is wrong. A connection that falls behind with its events loses some.
 */
struct sb_egress;

struct sb_egress_opts {
	size_t size; /* sizeof this struct */
	const char *session;
	struct sb_gate gate; /* owned by the proxy from sb_egress_new on, also when that fails */
	int control;         /* a listening unix socket, owned likewise; -1: none */
	struct sb_netpolicy *policy;                        /* owned likewise */
	struct sb_lookup_server servers[SB_LOOKUP_SERVERS]; /* none: those of the machine */
	size_t n_servers;
	const char *hosts;      /* the text of a hosts file; NULL: /etc/hosts */
	size_t max_connections; /* lowered to what the descriptors allow */
	size_t max_buffered;    /* bytes under way, over all connections, about */
	int64_t hello_ms;       /* for the first bytes to be complete */
	int64_t connect_ms;     /* to reach the other side */
	int64_t lookup_ms;      /* of a name */
	int64_t half_ms;        /* for a connection of which one side has ended */
	int64_t idle_ms;        /* for any connection without a byte */
	int64_t cache_min_ms;   /* that a looked-up address is good for at least */
	bool unwatched;         /* goes on without anybody at the control socket */
};
#define SB_EGRESS_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_egress_opts), .gate = SB_GATE_INIT, .control = -1, \
		.max_connections = 2048, .max_buffered = 16u << 20, .hello_ms = 10000, \
		.connect_ms = 10000, .lookup_ms = 5000, .half_ms = 300000, .idle_ms = 3600000, \
		.cache_min_ms = 30000 \
	}

struct sb_egress *sb_egress_new(const struct sb_egress_opts *o, struct sb_error *err);
void sb_egress_free(struct sb_egress *e);

/*
 * Serves until it is told to quit, the watched process ends, or `cancel` is requested. Until a
 * process is watched, it also ends when nobody is at the control socket any more.
 */
int sb_egress_run(struct sb_egress *e, const struct sb_cancel *cancel, struct sb_error *err);

#endif
