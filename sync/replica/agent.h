/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_AGENT_H
#define SBSYNC_AGENT_H

#include <sb/cancel.h>
#include <sb/log.h>
#include <sync/wire/transport.h>

/*
 * The far side of a sync: serves one controller on `t` until it says goodbye. Whatever the
 * controller sends, the agent reads and changes only what lies beneath the root that the controller
 * named. It first writes SB_PROTO_MARKER. It tells the controller of a failure and returns it.
 */
struct sb_agent_opts {
	size_t size;
	const char *state_dir; /* NULL: the default */
	const struct sb_cancel *cancel;
	struct sb_log log;
	int stall_ms; /* it takes a controller that is silent for so long for gone */
};
#define SB_AGENT_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_agent_opts), .stall_ms = 60000 \
	}

int sb_agent_serve(struct sb_transport *t, const struct sb_agent_opts *opts, struct sb_error *err);

#endif
