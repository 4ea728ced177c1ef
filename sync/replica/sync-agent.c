/* SPDX-License-Identifier: MIT */
/* The public entry of an agent on two descriptors. */
#include "config.h"

#include <sbsync/sync.h>

#include <sync/replica/agent.h>

int
sb_sync_agent(int in_fd, int out_fd, const struct sb_cancel *cancel, struct sb_error *err)
{
	struct sb_agent_opts o = SB_AGENT_OPTS_INIT;
	sb_auto(sb_transport) struct sb_transport *t = sb_transport_fds(in_fd, out_fd, err);

	if (!t)
		return err ? err->code : SB_E_NOMEM;
	o.cancel = cancel;
	return sb_agent_serve(t, &o, err);
}
