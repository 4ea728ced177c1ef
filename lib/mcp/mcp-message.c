/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <mcp/mcp-message.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rpc/protocol/json.h>

static json_t *
envelope(const json_t *id)
{
	json_t *o = json_object();

	(void)json_object_set_new(o, "jsonrpc", json_string("2.0"));
	/* A copy: what it is of may belong to another thread. */
	(void)json_object_set_new(o, "id", id ? json_deep_copy(id) : json_null());
	return o;
}

json_t *
sb_mcp_message_result(const json_t *id, json_t *result)
{
	json_t *o = envelope(id);

	if (json_object_set_new(o, "result", result) < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

json_t *
sb_mcp_message_error(const json_t *id, int code, const char *fmt, ...)
{
	json_t *o = envelope(id), *e = json_object();
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	(void)json_object_set_new(e, "code", json_integer(code));
	(void)json_object_set_new(e, "message", sb_rpc_json_text(text, strlen(text)));
	if (json_object_set_new(o, "error", e) < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

json_t *
sb_mcp_message_note(const char *method, json_t *params)
{
	json_t *o = json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method", method);

	if (json_object_set_new(o, "params", params) < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

json_t *
sb_mcp_message_parse(const char *line, size_t len, json_t **refusal)
{
	struct sb_error why = { 0 };
	json_t *v = sb_rpc_json_value(line, len, &why);

	if (!v) {
		*refusal = sb_mcp_message_error(NULL, SB_MCP_PARSE_ERROR, "%s", why.msg);
		return NULL;
	}
	if (json_is_object(v) || json_array_size(v) > 0)
		return v;
	json_decref(v);
	*refusal = sb_mcp_message_error(NULL, SB_MCP_INVALID_REQUEST,
		"a message is an object, or a list of them that is not empty");
	return NULL;
}

static bool
is_id(const json_t *v)
{
	return json_is_integer(v) || json_is_string(v);
}

/* A text without NUL: what follows one would not be seen. */
static const char *
whole_text(const json_t *v)
{
	const char *s = json_string_value(v);

	return s && strlen(s) == json_string_length(v) ? s : NULL;
}

bool
sb_mcp_message_read(const json_t *v, struct sb_mcp_message *out, json_t **refusal)
{
	const json_t *id = json_object_get(v, "id"), *method = json_object_get(v, "method");
	const char *version = json_string_value(json_object_get(v, "jsonrpc")), *wrong = NULL;
	const json_t *params = json_object_get(v, "params");
	bool answer = json_object_get(v, "result") || json_object_get(v, "error");

	*out = (struct sb_mcp_message){ .method = whole_text(method) };
	if (!json_is_object(v))
		wrong = "a message is an object";
	else if (!version || strcmp(version, "2.0") != 0)
		wrong = "jsonrpc must be \"2.0\"";
	else if (method && answer)
		wrong = "it is a request and an answer at once";
	else if (!method && !answer)
		wrong = "method is missing";
	else if (method && !out->method)
		wrong = "method must be text";
	else if (id && !is_id(id) && !answer)
		wrong = "id must be text or a whole number";
	else if (method && params && !json_is_object(params))
		wrong = "params must be an object";
	if (wrong) {
		*refusal = sb_mcp_message_error(is_id(id) ? id : NULL, SB_MCP_INVALID_REQUEST, "%s",
			wrong);
		return false;
	}
	out->kind = answer ? SB_MCP_MESSAGE_ANSWER :
		id         ? SB_MCP_MESSAGE_REQUEST :
			     SB_MCP_MESSAGE_NOTIFICATION;
	out->id = answer ? NULL : id;
	out->params = answer ? NULL : params;
	return true;
}
