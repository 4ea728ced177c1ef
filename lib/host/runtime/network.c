/* SPDX-License-Identifier: MIT */
/* The names of the networks that a session may have. */
#include "config.h"

#include <string.h>

#include <host/runtime/runtime.h>

static const char *const names[] = { "", "none", "sandbox", "host", "outbound" };
#define NAMES (sizeof names / sizeof names[0])

const char *
sb_host_network_name(enum sb_host_network n)
{
	return (unsigned)n < NAMES ? names[n] : "?";
}

bool
sb_host_network_from(const char *name, enum sb_host_network *out)
{
	size_t i = 0;

	while (i < NAMES && strcmp(names[i], name) != 0)
		i++;
	if (i < NAMES)
		*out = (enum sb_host_network)i;
	return i < NAMES;
}
