/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_NAMES_H
#define SB_EGRESS_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <egress/dns.h>
#include <egress/netaddr.h>
#include <egress/netname.h>

/*
 * The names that a session asked for and the addresses that stand for them in there: each name gets
 * one of 198.19.0.0/16, which leads to no other name as long as any program may remember it. Not
 * thread-safe.
 */
struct sb_names;

#define SB_NAMES_MAX 4096

/* One name. Borrowed; lives until the table is freed or, while `users` is 0, until it is pushed
   out. */
struct sb_name {
	char name[SB_NETNAME_MAX];
	struct sb_netaddr alias; /* what the session knows it by */
	unsigned users;          /* connections that hold on to it */
	int64_t used_ms;         /* last time it was asked for */
	/* What our own lookup gave; good until `expires_ms`. */
	struct sb_netaddr v[2 * SB_DNS_ADDRS];
	size_t n;
	int64_t expires_ms;
	/* The table's. */
	struct sb_name *next;
	uint16_t slot;
};

struct sb_names *sb_names_new(void);
void sb_names_free(struct sb_names *t);

/* Whether the address is one of those that stand for names. */
bool sb_names_is_alias(const struct sb_netaddr *a);

struct sb_name *sb_names_find(struct sb_names *t, const char *name);
struct sb_name *sb_names_by_alias(struct sb_names *t, const struct sb_netaddr *a);
/*
 * The entry of the name, made when it is new. NULL without memory, or when all SB_NAMES_MAX are in
 * use by connections. The one that was not asked for longest makes room.
 */
struct sb_name *sb_names_get(struct sb_names *t, const char *name, int64_t now_ms);

#endif
