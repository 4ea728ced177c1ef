/* SPDX-License-Identifier: MIT */
#ifndef SB_MCP_H
#define SB_MCP_H

#include <sb/env.h>

/*
 * A server of the Model Context Protocol (MCP) that offers the tools of one environment: messages
 * of JSON-RPC 2.0, one a line, as its stdio transport has them. Versions 2024-11-05, 2025-03-26,
 * 2025-06-18 and 2025-11-25 of the protocol; of them initialize, ping, tools/list, tools/call with
 * progress, and cancellation.
 */

#define SB_MCP_LINE_MAX (16u << 20) /* bytes of a message that comes in */
#define SB_MCP_CALLS_MAX 64         /* tool calls at a time; more are refused */

/* A tool has ended that may have changed something; its answer waits for this. Several threads. */
typedef void (*sb_mcp_done_fn)(const struct sb_host_tool *tool, void *arg);

struct sb_mcp_opts {
	size_t size;
	struct sb_env *env; /* borrowed */
	int in, out;        /* stay the caller's; `out` must block */
	const char *dir;    /* where tools work, see sb_host_tool_request; NULL: the workspace */
	const struct sb_cancel *cancel; /* ends it, with all calls; may be NULL */
	sb_mcp_done_fn done;            /* may be NULL */
	void *arg;
	struct sb_log log;
};
#define SB_MCP_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_mcp_opts), .in = 0, .out = 1 \
	}

/*
 * Serves until `in` ends and the calls under way are answered, or until nobody reads `out` any
 * more. Asks the host for its tools first, so a session that is not there is an error at once.
 * SIGPIPE must be ignored. SB_E_CANCELED.
 */
SB_API int sb_mcp_serve(const struct sb_mcp_opts *o, struct sb_error *err);

#endif
