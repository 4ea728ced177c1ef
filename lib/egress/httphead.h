/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_HTTPHEAD_H
#define SB_EGRESS_HTTPHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <egress/netaddr.h>
#include <egress/netname.h>

/*
 * The head of a plain HTTP/1 request, read strictly: whatever two servers could understand in two
 * ways is bad (bare line ends, folded lines, two lengths, two hosts, spaces before a colon, ...).
 */
enum sb_httphead_state {
	SB_HTTPHEAD_MORE,
	SB_HTTPHEAD_DONE,
	SB_HTTPHEAD_OTHER, /* no HTTP: the first line is no request line */
	SB_HTTPHEAD_BAD,
};

#define SB_HTTPHEAD_MAX 16384
#define SB_HTTPHEAD_FIELDS 100

/* Whom a request is for: a name or an address (then `name` is ""), and a port. */
struct sb_httphead_peer {
	char name[SB_NETNAME_MAX];
	struct sb_netaddr addr;
	uint16_t port; /* 0: not given */
};

enum sb_httphead_target { SB_HTTPHEAD_ORIGIN, SB_HTTPHEAD_ABSOLUTE, SB_HTTPHEAD_CONNECT };

struct sb_httphead {
	size_t len; /* of the head with its empty line */
	enum sb_httphead_target target;
	bool has_host;
	struct sb_httphead_peer host;        /* of the Host line */
	struct sb_httphead_peer target_peer; /* of a CONNECT or an absolute URL */
	bool chunked, upgrade;
	uint64_t length; /* Content-Length */
	const char *why; /* BAD: what is wrong with it */
};

enum sb_httphead_state sb_httphead_read(const uint8_t *data, size_t len, struct sb_httphead *out);

/* "host", "host:80", "1.2.3.4", "[::1]:80". */
bool sb_httphead_parse_peer(const char *s, size_t len, struct sb_httphead_peer *out);
bool sb_httphead_same_peer(const struct sb_httphead_peer *a, const struct sb_httphead_peer *b,
	uint16_t default_port);

/*
 * Adds the head to `out` as it goes to the server: in origin form, without the lines meant for a
 * proxy, and with "Connection: close", so that one connection carries one request. `h` is DONE for
 * `data`. A head with `upgrade` keeps its Connection line.
 */
void sb_httphead_write(const struct sb_httphead *h, const uint8_t *data, struct sb_buf *out);

#endif
