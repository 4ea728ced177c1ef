/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/netaddr.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define V4(a, b, c, d, n, nev, w) \
	{ \
		{ { 4, { a, b, c, d } }, n }, nev, w \
	}
#define V6(n, nev, w, ...) \
	{ \
		{ { 6, { __VA_ARGS__ } }, n }, nev, w \
	}

/*
 * The registries of special-purpose addresses, as far as they matter to who may be reached. Ranges
 * for documentation are left out: nobody answers there.
 */
static const struct sb_netspecial specials[] = {
	V4(0, 0, 0, 0, 8, true, "this-network"),
	V4(10, 0, 0, 0, 8, false, "private"),
	V4(100, 64, 0, 0, 10, false, "shared"),
	V4(127, 0, 0, 0, 8, false, "loopback"),
	V4(169, 254, 0, 0, 16, false, "link-local"),
	V4(172, 16, 0, 0, 12, false, "private"),
	V4(192, 0, 0, 0, 24, true, "reserved"),
	V4(192, 88, 99, 0, 24, true, "reserved"),
	V4(192, 168, 0, 0, 16, false, "private"),
	V4(198, 18, 0, 0, 15, true, "reserved"),
	V4(168, 63, 129, 16, 32, false, "metadata"),
	V4(224, 0, 0, 0, 4, true, "multicast"),
	V4(240, 0, 0, 0, 4, true, "reserved"),
	V6(128, false, "loopback", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
	V6(96, true, "embeds-ipv4", 0),
	V6(96, true, "embeds-ipv4", 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff),
	V6(32, true, "embeds-ipv4", 0, 0x64, 0xff, 0x9b),
	V6(64, true, "discard", 1),
	V6(32, true, "embeds-ipv4", 0x20, 0x01),
	V6(16, true, "embeds-ipv4", 0x20, 0x02),
	V6(7, false, "private", 0xfc),
	V6(10, false, "link-local", 0xfe, 0x80),
	V6(10, false, "private", 0xfe, 0xc0),
	V6(8, true, "multicast", 0xff),
};

static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static void
set_v6(struct sb_netaddr *a, const uint8_t b[16])
{
	*a = (struct sb_netaddr){ .family = 6 };
	if (memcmp(b, mapped, sizeof mapped) == 0) {
		a->family = 4;
		memcpy(a->b, b + sizeof mapped, 4);
	} else {
		memcpy(a->b, b, 16);
	}
}

bool
sb_netaddr_parse(const char *s, size_t len, struct sb_netaddr *out)
{
	char text[SB_NETADDR_TEXT];
	uint8_t b[16];

	if (len == 0 || len >= sizeof text || memchr(s, '\0', len))
		return false;
	memcpy(text, s, len);
	text[len] = '\0';
	if (inet_pton(AF_INET, text, b) == 1) {
		*out = (struct sb_netaddr){ .family = 4 };
		memcpy(out->b, b, 4);
		return true;
	}
	if (inet_pton(AF_INET6, text, b) != 1)
		return false;
	set_v6(out, b);
	return true;
}

static unsigned
bits_of(const struct sb_netaddr *a)
{
	return a->family == 4 ? 32 : 128;
}

/* A copy of `a` whose bits behind the first `bits` are zero. */
static struct sb_netaddr
masked(const struct sb_netaddr *a, unsigned bits)
{
	struct sb_netaddr m = { .family = a->family };

	memcpy(m.b, a->b, bits / 8);
	if (bits % 8)
		m.b[bits / 8] = (uint8_t)(a->b[bits / 8] & (0xff00u >> (bits % 8)));
	return m;
}

bool
sb_netaddr_parse_block(const char *s, size_t len, struct sb_netblock *out)
{
	const char *slash = memchr(s, '/', len);
	size_t at = slash ? (size_t)(slash - s) : len, digits = slash ? len - at - 1 : 0;
	struct sb_netblock n = { .bits = 0 };
	struct sb_netaddr m;
	unsigned bits = 0;

	if (!sb_netaddr_parse(s, at, &n.a))
		return false;
	if (!slash) {
		n.bits = (uint8_t)bits_of(&n.a);
		*out = n;
		return true;
	}
	if (digits < 1 || digits > 3 || (digits > 1 && slash[1] == '0'))
		return false;
	for (size_t i = 1; i <= digits; i++) {
		if (slash[i] < '0' || slash[i] > '9')
			return false;
		bits = bits * 10 + (unsigned)(slash[i] - '0');
	}
	/* ::ffff:10.0.0.0/104 counts its bits as IPv6 does. */
	if (n.a.family == 4 && memchr(s, ':', at))
		bits = bits >= 96 ? bits - 96 : 999;
	m = bits <= bits_of(&n.a) ? masked(&n.a, bits) : (struct sb_netaddr){ 0 };
	if (!sb_netaddr_equal(&m, &n.a))
		return false;
	n.bits = (uint8_t)bits;
	*out = n;
	return true;
}

char *
sb_netaddr_format(const struct sb_netaddr *a, char out[SB_NETADDR_TEXT])
{
	if (!inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->b, out, SB_NETADDR_TEXT))
		out[0] = '\0';
	return out;
}

bool
sb_netaddr_equal(const struct sb_netaddr *a, const struct sb_netaddr *b)
{
	return a->family == b->family && a->family != 0 && memcmp(a->b, b->b, bits_of(a) / 8) == 0;
}

bool
sb_netaddr_block_has(const struct sb_netblock *block, const struct sb_netaddr *a)
{
	struct sb_netaddr m;

	if (a->family != block->a.family || a->family == 0)
		return false;
	m = masked(a, block->bits);
	return sb_netaddr_equal(&m, &block->a);
}

bool
sb_netaddr_block_within(const struct sb_netblock *inner, const struct sb_netblock *outer)
{
	return inner->bits >= outer->bits && sb_netaddr_block_has(outer, &inner->a);
}

const struct sb_netspecial *
sb_netaddr_special(const struct sb_netaddr *a)
{
	for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
		if (sb_netaddr_block_has(&specials[i].block, a))
			return &specials[i];
	return NULL;
}

bool
sb_netaddr_from_sockaddr(const struct sockaddr *sa, struct sb_netaddr *out, uint16_t *port)
{
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const void *)sa;

		*out = (struct sb_netaddr){ .family = 4 };
		memcpy(out->b, &v4->sin_addr, 4);
		*port = ntohs(v4->sin_port);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const void *)sa;

		set_v6(out, v6->sin6_addr.s6_addr);
		*port = ntohs(v6->sin6_port);
		return true;
	}
	return false;
}

socklen_t
sb_netaddr_to_sockaddr(const struct sb_netaddr *a, uint16_t port, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof *out);
	if (a->family == 4) {
		struct sockaddr_in *v4 = (void *)out;

		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, a->b, 4);
		return sizeof *v4;
	}
	struct sockaddr_in6 *v6 = (void *)out;

	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, a->b, 16);
	return sizeof *v6;
}
