/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_NETADDR_H
#define SB_EGRESS_NETADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* An address of IPv4 or IPv6. One of IPv4 that is written as IPv6 (::ffff:a.b.c.d) is kept as IPv4.
 */
struct sb_netaddr {
	uint8_t family; /* 4 or 6; 0: none */
	uint8_t b[16];
};

/* A block of addresses: the first `bits` bits are those of `a`, whose others are zero. */
struct sb_netblock {
	struct sb_netaddr a;
	uint8_t bits;
};

/* What a sandbox may not reach unless it is listed, or not at all. */
struct sb_netspecial {
	struct sb_netblock block;
	bool never;       /* not even when listed */
	const char *what; /* "private", "loopback", ... */
};

#define SB_NETADDR_TEXT 46

/* Plain spellings only: four decimal numbers without leading zeros, or IPv6 without a zone. */
bool sb_netaddr_parse(const char *s, size_t len, struct sb_netaddr *out);
/* ADDRESS or ADDRESS/BITS. Bits beyond the prefix must be zero, else false. */
bool sb_netaddr_parse_block(const char *s, size_t len, struct sb_netblock *out);
/* Returns `out`. */
char *sb_netaddr_format(const struct sb_netaddr *a, char out[SB_NETADDR_TEXT]);

bool sb_netaddr_equal(const struct sb_netaddr *a, const struct sb_netaddr *b);
bool sb_netaddr_block_has(const struct sb_netblock *block, const struct sb_netaddr *a);
/* Whether `inner` lies wholly in `outer`. */
bool sb_netaddr_block_within(const struct sb_netblock *inner, const struct sb_netblock *outer);

/* The special range that the address is in; NULL: it is an ordinary public address. */
const struct sb_netspecial *sb_netaddr_special(const struct sb_netaddr *a);

/* False for a family that is neither. */
bool sb_netaddr_from_sockaddr(const struct sockaddr *sa, struct sb_netaddr *out, uint16_t *port);
socklen_t sb_netaddr_to_sockaddr(const struct sb_netaddr *a, uint16_t port,
	struct sockaddr_storage *out);

#endif
