/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_DNS_H
#define SB_EGRESS_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <egress/netaddr.h>
#include <egress/netname.h>

/* DNS messages, as far as a resolver for addresses needs them. */
#define SB_DNS_A 1
#define SB_DNS_CNAME 5
#define SB_DNS_AAAA 28
#define SB_DNS_OK 0
#define SB_DNS_FORMERR 1
#define SB_DNS_SERVFAIL 2
#define SB_DNS_NXDOMAIN 3
#define SB_DNS_NOTIMP 4
#define SB_DNS_REFUSED 5
#define SB_DNS_MAX 4096  /* of a message that is read */
#define SB_DNS_REPLY 600 /* of a message that is written */
#define SB_DNS_ADDRS 16  /* of one name that are kept */

struct sb_dns_query {
	uint16_t id, type, class;
	bool wants_recursion;
	char name[SB_NETNAME_MAX]; /* "" when it is no name of a host; the question may still be
				      answered */
	uint8_t question[260];     /* as it came, for the answer */
	size_t question_len;
};

/*
 * A query with exactly one question. False: not even an error can be sent back (too short, or an
 * answer itself). `rcode` is SB_DNS_OK, or what to answer with.
 */
bool sb_dns_read_query(const uint8_t *data, size_t len, struct sb_dns_query *out, int *rcode);

/* Writes an answer with at most one address; its length. */
size_t sb_dns_write_answer(const struct sb_dns_query *q, int rcode, const struct sb_netaddr *addr,
	uint32_t ttl, uint8_t out[SB_DNS_REPLY]);

/* Writes a query for `name`; its length, 0 for a name that is none. */
size_t sb_dns_write_query(uint16_t id, const char *name, uint16_t type, uint8_t out[SB_DNS_REPLY]);

struct sb_dns_reply {
	int rcode;
	struct sb_netaddr v[SB_DNS_ADDRS];
	size_t n;
	uint32_t ttl; /* the smallest of those that matter */
};

/*
 * Reads the answer to that query. False: it is not the answer to it, or broken, and the true one
 * may still come. Addresses count when their owner is the name, or where its aliases lead.
 */
bool sb_dns_read_reply(const uint8_t *data, size_t len, uint16_t id, const char *name,
	uint16_t type, struct sb_dns_reply *out);

#endif
