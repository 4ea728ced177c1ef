/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_LOOKUP_H
#define SB_EGRESS_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <egress/dns.h>
#include <egress/source.h>
#include <sb/error.h>

/*
 * Our own lookups of names: the hosts file of the machine, then its resolvers by UDP, A and AAAA at
 * once. Driven by an epoll loop; nothing blocks. Not thread-safe.
 */
struct sb_lookups;

#define SB_LOOKUP_JOBS 64
#define SB_LOOKUP_SERVERS 3

struct sb_lookup_server {
	struct sb_netaddr addr;
	uint16_t port;
};

struct sb_lookup_opts {
	int epoll; /* borrowed */
	/* None: those of `resolv_conf`, which is read again for each lookup. */
	struct sb_lookup_server servers[SB_LOOKUP_SERVERS];
	size_t n_servers;
	const char *hosts;       /* the text of a hosts file; NULL: /etc/hosts, read each time */
	const char *resolv_conf; /* NULL: /etc/resolv.conf */
	int64_t total_ms;        /* of a lookup */
	int64_t retry_ms;        /* until the next server is asked */
};

struct sb_lookup_answer {
	struct sb_netaddr v[2 * SB_DNS_ADDRS];
	size_t n;
	uint32_t ttl;     /* seconds */
	const char *why;  /* without addresses: why; else NULL */
	bool nonexistent; /* the resolvers know that there is no such name */
};

/* Who waits for an answer; part of the waiter's own structure. */
struct sb_lookup_wait {
	/* May start another lookup, or cancel any. `a` lives during the call only. */
	void (*done)(struct sb_lookup_wait *w, const struct sb_lookup_answer *a);
	struct sb_lookup_wait *next; /* the lookup's */
	struct sb_lookup_job *job;   /* NULL: not waiting */
};

/* `o` is copied; its strings are borrowed. */
struct sb_lookups *sb_lookup_open(const struct sb_lookup_opts *o, struct sb_error *err);
/* Nobody may wait any more. */
void sb_lookup_close(struct sb_lookups *l);

/*
 * Looks the name up; `w->done` is called later, from sb_lookup_tick or an event, never from here.
 * Those who ask for one name at the same time share the work. SB_E_LIMIT: SB_LOOKUP_JOBS are under
 * way.
 */
int sb_lookup_start(struct sb_lookups *l, const char *name, struct sb_lookup_wait *w,
	struct sb_error *err);
void sb_lookup_cancel(struct sb_lookup_wait *w);

/* Deals with retries and deadlines; to be called after each round of events. */
void sb_lookup_tick(struct sb_lookups *l, int64_t now_ms);
/* When the next tick is due; SB_NEVER: nothing is under way. */
int64_t sb_lookup_due(const struct sb_lookups *l);

#endif
