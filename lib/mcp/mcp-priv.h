/* SPDX-License-Identifier: MIT */
#ifndef SB_MCP_PRIV_H
#define SB_MCP_PRIV_H

#include <pthread.h>

#include <mcp/mcp-message.h>
#include <sb/mcp.h>

/* Requests that came in one line and are answered in one. */
struct sb_mcp_batch {
	json_t *answers;
	size_t left; /* to be answered, and one while they are read */
};

struct sb_mcp_call;

/* One client. */
struct sb_mcp {
	struct sb_mcp_opts o;
	struct sb_host_tool *tools;
	size_t n_tools;
	const char *version; /* of the protocol; NULL before initialize */

	pthread_mutex_t mu; /* guards what follows, and the batches */
	pthread_cond_t idle;
	struct sb_mcp_call *calls;
	size_t n_calls;

	pthread_mutex_t out_mu; /* one message at a time */
	bool gone;              /* nobody reads; with out_mu */
};

/* Sends a message, which it gives up; NULL (no memory) sends nothing. */
void sb_mcp_send(struct sb_mcp *m, json_t *msg);
/* The answer to a request: at once, or with the others of its batch (NULL: there is none). */
void sb_mcp_answer(struct sb_mcp *m, struct sb_mcp_batch *b, json_t *answer);

/* mcp-tool.c: the result of tools/list. */
json_t *sb_mcp_tool_list(const struct sb_mcp *m);
/* Begins a tools/call on a thread of its own, which answers; or refuses it. */
void sb_mcp_tool_call(struct sb_mcp *m, struct sb_mcp_batch *b, const json_t *id,
	const json_t *params);
/* notifications/cancelled; of an unknown request: nothing. */
void sb_mcp_tool_cancel(struct sb_mcp *m, const json_t *id);
/* All of them. */
void sb_mcp_tool_cancel_all(struct sb_mcp *m);

#endif
