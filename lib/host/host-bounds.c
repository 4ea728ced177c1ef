/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-bounds.h>

#include <unistd.h>

#include <host/host-priv.h>

void
sb_host_bounds_log(const struct sb_host *h)
{
	sb_log(&h->o.log, SB_LOG_INFO, "storage", "sessions are on %s%s: %s", h->st->ops->name,
		h->st->ops->snapshots ? "" : ", which has no snapshots", h->storage_why);
	if (h->rt->ops->isolates) {
		sb_log(&h->o.log, SB_LOG_INFO, "runtime", "sessions run in %s (isolation: %s)",
			h->rt->ops->name, h->rt->ops->isolation);
		if (h->o.session_uid_count)
			sb_log(&h->o.log, SB_LOG_INFO, "runtime",
				"their files and processes belong to users %u to %u",
				(unsigned)h->o.session_uid_first,
				(unsigned)(h->o.session_uid_first + h->o.session_uid_count - 1));
		else
			sb_log(&h->o.log, geteuid() == 0 ? SB_LOG_WARN : SB_LOG_INFO, "runtime",
				"their files and processes belong to user %u: %s",
				(unsigned)geteuid(), h->owner_why);
	} else {
		sb_log(&h->o.log, SB_LOG_WARN, "runtime",
			"runtime none isolates nothing: whatever runs in a session has all rights "
			"of user %u on this machine",
			(unsigned)geteuid());
	}
}
