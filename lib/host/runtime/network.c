/* SPDX-License-Identifier: MIT */
/* The names of the networks that a session may have. */
#include "config.h"

#include <string.h>

#include <sb/host.h>

const char *
sb_host_network_name(enum sb_host_network n)
{
	static const char *const names[] = { "", "none", "sandbox", "host" };

	return (unsigned)n < sizeof names / sizeof names[0] ? names[n] : "?";
}

bool
sb_host_network_from(const char *name, enum sb_host_network *out)
{
	for (int i = 0; i <= SB_HOST_NET_HOST; i++)
		if (strcmp(name, sb_host_network_name((enum sb_host_network)i)) == 0) {
			*out = (enum sb_host_network)i;
			return true;
		}
	return false;
}
