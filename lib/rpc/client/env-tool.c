/* SPDX-License-Identifier: MIT */
/* Runs a tool in an environment and passes its progress on (sb_env_execute of sb/env.h). */
#include "config.h"

#include <rpc/client/env-priv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/random.h>
#include <rpc/protocol/json.h>

struct tool_stream {
	const struct sb_host_tool_request *req;
	struct sb_host_tool_result *out;
	const char *call_id;
	bool done;
};

/* Random: it must not meet that of any other loop that uses the session. */
static int
make_id(char out[40], struct sb_error *err)
{
	unsigned char raw[16];
	int r = sb_random(raw, sizeof raw, err);
	size_t at = 0;

	if (r < 0)
		return r;
	at += (size_t)snprintf(out, 40, "env-");
	for (size_t i = 0; i < sizeof raw; i++)
		at += (size_t)snprintf(out + at, 40 - at, "%02x", raw[i]);
	return 0;
}

static json_t *
resources(const struct sb_host_resources *r)
{
	return json_pack("{s:f, s:I, s:I, s:I, s:I}", "CPUs", r->cpus, "MemMB",
		(json_int_t)r->mem_mb, "Timeout", (json_int_t)(r->timeout_ms * 1000000),
		"MaxOutputBytes", (json_int_t)r->max_output, "MaxPIDs", (json_int_t)r->max_pids);
}

static int
request(const struct sb_env *e, const struct sb_host_tool_request *req, const char *call_id,
	json_t **out, struct sb_error *err)
{
	json_t *in = sb_env_request(e, err), *params;
	json_error_t why = { .text = "not an object" };

	if (!in)
		return err->code;
	params = json_loads(req->params ? req->params : "{}", JSON_ALLOW_NUL, &why);
	if (!json_is_object(params)) {
		json_decref(params);
		json_decref(in);
		return sb_fail(err, SB_E_INVAL, "params: %.120s",
			why.text[0] ? why.text : "not an object");
	}
	(void)json_object_set_new(in, "Params", params);
	(void)json_object_set_new(in, "Resources", resources(&req->res));
	if (req->dir && *req->dir)
		(void)json_object_set_new(in, "Dir", sb_rpc_json_text(req->dir, strlen(req->dir)));
	if (json_object_set_new(in, "ToolCallID", json_string(call_id)) < 0 ||
		json_object_set_new(in, "ToolName", json_string(req->tool ? req->tool : "")) < 0) {
		json_decref(in);
		return sb_fail(err, SB_E_INVAL, "tool or call id is not UTF-8");
	}
	*out = in;
	return 0;
}

static int
take_result(const json_t *o, struct sb_host_tool_result *out, struct sb_error *err)
{
	const json_t *text = json_object_get(o, "Content"), *code = json_object_get(o, "ExitCode");
	size_t len = json_string_length(text);

	*out = (struct sb_host_tool_result){ .text_len = len,
		.is_error = sb_json_flag(o, "IsError"),
		.has_exit = json_is_integer(code),
		.exit_code = (int)json_integer_value(code),
		.timed_out = sb_json_flag(o, "TimedOut"),
		.oom = sb_json_flag(o, "OOMKilled"),
		.truncated = sb_json_flag(o, "Truncated"),
		.tier = (int)sb_json_int(o, "Tier"),
		.duration_ns = sb_json_int(o, "Duration") };
	out->text = malloc(len + 1);
	if (!out->text)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (len > 0)
		memcpy(out->text, json_string_value(text), len);
	out->text[len] = '\0';
	(void)snprintf(out->snapshot, sizeof out->snapshot, "%s", sb_json_str(o, "SnapshotID"));
	(void)snprintf(out->snapshot_error, sizeof out->snapshot_error, "%s",
		sb_json_str(o, "SnapshotError"));
	return 0;
}

static int
on_message(const char *text, size_t len, void *arg, struct sb_error *err)
{
	struct tool_stream *w = arg;
	json_t *o = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	const json_t *progress = json_object_get(o, "Progress"),
		     *response = json_object_get(o, "Response");
	const json_t *content = json_object_get(progress, "Content");
	int r = 0;

	if (!json_is_object(o) || w->done)
		r = sb_fail(err, SB_E_PROTO, "tool call: a message that does not belong there");
	if (r == 0 && content && w->req->progress)
		w->req->progress(json_string_value(content), json_string_length(content),
			sb_json_flag(progress, "IsError"), w->req->arg);
	if (r == 0 && json_is_object(response)) {
		if (strcmp(sb_json_str(response, "ToolCallID"), w->call_id) != 0)
			r = sb_fail(err, SB_E_PROTO, "tool call: the answer to another one");
		else
			r = take_result(response, w->out, err);
		w->done = r == 0;
	}
	json_decref(o);
	return r;
}

int
sb_env_execute(struct sb_env *e, const struct sb_host_tool_request *given,
	const struct sb_host_call *call, struct sb_host_tool_result *out, struct sb_error *err)
{
	const struct sb_rpc_wait wait = { call ? call->cancel : NULL,
		call ? call->deadline : SB_NEVER };
	struct sb_host_tool_request req = SB_HOST_TOOL_REQUEST_INIT;
	struct tool_stream w = { .req = &req, .out = out };
	struct sb_rpc_client *c = NULL;
	struct sb_error why = { 0 };
	sb_autofree char *text = NULL;
	json_t *in = NULL;
	char made[40];
	int r = 0;

	memcpy(&req, given, given->size < sizeof req ? given->size : sizeof req);
	w.call_id = req.call_id && *req.call_id ? req.call_id : made;
	if (w.call_id == made)
		r = make_id(made, &why);
	if (r == 0)
		r = request(e, &req, w.call_id, &in, &why);
	sb_env_fence(in, call);
	text = in ? json_dumps(in, JSON_COMPACT) : NULL;
	json_decref(in);
	if (r == 0 && !text)
		r = sb_fail(&why, SB_E_NOMEM, "out of memory");
	if (r == 0 && !(c = sb_env_take(e->host, &why)))
		r = why.code;
	if (r == 0)
		r = sb_rpc_client_stream(c, "ExecuteToolStream", text, &wait, on_message, &w, &why);
	if (c)
		sb_env_give(e->host, c);
	if (r == 0 && !w.done)
		r = sb_fail(&why, SB_E_PROTO, "tool call: the stream ended without a result");
	if (r < 0 && w.done)
		sb_host_tool_result_clear(out);
	if (r < 0 && err)
		*err = why;
	return r;
}

static bool
take_tool(const json_t *o, struct sb_host_tool *out)
{
	out->name = strdup(sb_json_str(o, "Name"));
	out->description = strdup(sb_json_str(o, "Description"));
	out->schema = json_dumps(json_object_get(o, "InputSchema"), JSON_COMPACT);
	out->reads = sb_json_flag(o, "ReadOnly");
	out->network = sb_json_flag(o, "Network");
	return out->name && out->description && out->schema;
}

int
sb_env_tools(struct sb_env *e, const struct sb_host_call *call, struct sb_host_tool **out,
	size_t *out_n, struct sb_error *err)
{
	struct sb_error why = { 0 };
	json_t *in = sb_env_request(e, &why), *answer = NULL, *list;
	struct sb_host_tool *v;
	size_t n;
	int r = in ? sb_env_call(e->host, "ListTools", in, call, &answer, &why) : why.code;

	list = json_object_get(answer, "Tools");
	n = json_array_size(list);
	v = calloc(n + 1, sizeof *v);
	for (size_t i = 0; i < n && r == 0; i++) {
		const json_t *o = json_array_get(list, i);

		if (!*sb_json_str(o, "Name") ||
			!json_is_object(json_object_get(o, "InputSchema")))
			r = sb_fail(&why, SB_E_PROTO, "list of tools: one without name or schema");
		else if (!v || !take_tool(o, &v[i]))
			r = sb_fail(&why, SB_E_NOMEM, "out of memory");
	}
	json_decref(answer);
	if (r < 0) {
		sb_host_tools_free(v, n);
		if (err)
			*err = why;
		return r;
	}
	*out = v;
	*out_n = n;
	return 0;
}
