/* SPDX-License-Identifier: MIT */
#ifndef SB_MCP_MESSAGE_H
#define SB_MCP_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include <base/cleanup.h>
#include <sb/error.h>

/* The messages of JSON-RPC 2.0, as MCP narrows them: an id is text or a whole number. */
enum {
	SB_MCP_PARSE_ERROR = -32700,
	SB_MCP_INVALID_REQUEST = -32600,
	SB_MCP_METHOD_NOT_FOUND = -32601,
	SB_MCP_INVALID_PARAMS = -32602,
	SB_MCP_INTERNAL_ERROR = -32603,
};

enum sb_mcp_message_kind {
	SB_MCP_MESSAGE_REQUEST,
	SB_MCP_MESSAGE_NOTIFICATION,
	SB_MCP_MESSAGE_ANSWER, /* to a request of ours, of which there is none */
};

/* All borrowed from the value it was read from. */
struct sb_mcp_message {
	enum sb_mcp_message_kind kind;
	const json_t *id;     /* of a request; else NULL */
	const char *method;   /* of a request or a notification; else NULL */
	const json_t *params; /* an object, or NULL */
};

/*
 * One line as JSON: a message, or a list of them (a batch). NULL: `refusal` is the answer to send.
 */
json_t *sb_mcp_message_parse(const char *line, size_t len, json_t **refusal);

/* Reads one message. False: `refusal` is the answer to send. */
bool sb_mcp_message_read(const json_t *v, struct sb_mcp_message *out, json_t **refusal);

/* Answers; new references, NULL: no memory. `id` NULL: null. `result` is taken over. */
json_t *sb_mcp_message_result(const json_t *id, json_t *result);
json_t *sb_mcp_message_error(const json_t *id, int code, const char *fmt, ...) SB_PRINTF(3, 4);
/* A notification; takes `params`. */
json_t *sb_mcp_message_note(const char *method, json_t *params);

#endif
