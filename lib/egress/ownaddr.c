/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/ownaddr.h>

#include <ifaddrs.h>
#include <stdlib.h>

#define FRESH_MS 1000
#define ADDRS_MAX 4096

void
sb_ownaddr_free(struct sb_ownaddr *o)
{
	free(o->v);
	*o = (struct sb_ownaddr){ 0 };
}

static void
refresh(struct sb_ownaddr *o, int64_t now)
{
	struct ifaddrs *all = NULL;
	size_t n = 0;

	sb_ownaddr_free(o);
	o->read_ms = now;
	o->unknown = true;
	if (getifaddrs(&all) < 0)
		return;
	for (struct ifaddrs *i = all; i; i = i->ifa_next)
		n++;
	o->v = n <= ADDRS_MAX ? calloc(n + 1, sizeof *o->v) : NULL;
	for (struct ifaddrs *i = all; i && o->v; i = i->ifa_next) {
		uint16_t port;

		if (i->ifa_addr && sb_netaddr_from_sockaddr(i->ifa_addr, &o->v[o->n], &port))
			o->n++;
	}
	o->unknown = o->v == NULL;
	freeifaddrs(all);
}

bool
sb_ownaddr_has(struct sb_ownaddr *o, const struct sb_netaddr *a, int64_t now_ms)
{
	if (o->read_ms == 0 || now_ms - o->read_ms > FRESH_MS)
		refresh(o, now_ms);
	for (size_t i = 0; i < o->n; i++)
		if (sb_netaddr_equal(&o->v[i], a))
			return true;
	return o->unknown;
}
