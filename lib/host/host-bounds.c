/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-bounds.h>

#include <unistd.h>

#include <host/host-priv.h>

void
sb_host_bounds_log(const struct sb_host *h)
{
	if (h->rt->ops->isolates)
		sb_log(&h->o.log, SB_LOG_INFO, "runtime", "sessions run in %s (isolation: %s)",
			h->rt->ops->name, h->rt->ops->isolation);
	else
		sb_log(&h->o.log, SB_LOG_WARN, "runtime",
			"runtime none isolates nothing: whatever runs in a session has all rights "
			"of user %u on this machine",
			(unsigned)geteuid());
}
