/* SPDX-License-Identifier: MIT */
/* Packets that lead nowhere (UDP but DNS, ICMP, ...): the kernel refuses them, this tells of it. */
#include "config.h"

#include <egress/egress-priv.h>

#include <errno.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define PER_ROUND 64

/* Destination, protocol and port of what the filter of the gate let through. */
static bool
read_packet(const uint8_t *p, size_t len, struct sb_netaddr *to, unsigned *proto, uint16_t *port)
{
	size_t head = len > 0 && p[0] >> 4 == 4 ? (size_t)(p[0] & 15) * 4 : 40;
	bool v4 = len > 0 && p[0] >> 4 == 4;

	if (len < head || head < 20)
		return false;
	*proto = v4 ? p[9] : p[6];
	*to = (struct sb_netaddr){ .family = v4 ? 4 : 6 };
	memcpy(to->b, p + (v4 ? 16 : 24), v4 ? 4 : 16);
	*port = *proto == IPPROTO_UDP && len >= head + 4 ?
		(uint16_t)(p[head + 2] << 8 | p[head + 3]) :
		0;
	return true;
}

void
sb_egress_packet_ready(struct sb_source *s, uint32_t events)
{
	struct sb_egress *e = s->owner;

	(void)events;
	for (int i = 0; i < PER_ROUND; i++) {
		struct sockaddr_ll from = { 0 };
		socklen_t len = sizeof from;
		uint8_t buf[128];
		ssize_t n = recvfrom(s->fd, buf, sizeof buf, MSG_DONTWAIT, (struct sockaddr *)&from,
			&len);
		const struct sb_netspecial *special;
		struct sb_netaddr to;
		unsigned proto;
		uint16_t port;
		char rule[40];

		if (n < 0 && errno != EINTR)
			return;
		if (n < 0 || from.sll_pkttype == PACKET_OUTGOING ||
			!read_packet(buf, (size_t)n, &to, &proto, &port))
			continue;
		/* Neighbours that look for each other are no attempt to get out. */
		special = sb_netaddr_special(&to);
		if (special && strcmp(special->what, "multicast") == 0)
			continue;
		e->refused++;
		(void)snprintf(rule, sizeof rule, "only TCP leaves, not protocol %u", proto);
		sb_egress_note(e,
			&(struct sb_verdict){ .kind = "packet",
				.addr = &to,
				.port = port,
				.verdict = "deny",
				.rule = rule });
	}
}
