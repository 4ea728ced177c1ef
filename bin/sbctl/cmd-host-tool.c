/* SPDX-License-Identifier: MIT */
/* sbctl host tool: one tool call. */
#include "config.h"

#include <stdio.h>

#include <bin/sbctl/host.h>

static void
on_tool(struct host_run *r, const json_t *msg)
{
	const json_t *res = json_object_get(msg, "Response");
	const json_t *text = json_object_get(res, "Content");
	size_t len = json_string_length(text);

	if (!json_is_object(res))
		return;
	r->status = json_is_true(json_object_get(res, "IsError")) ? 1 : 0;
	if (r->args.json)
		return;
	host_print_text(stdout, text);
	if (len > 0 && json_string_value(text)[len - 1] != '\n')
		(void)fputc('\n', stdout);
}

static int
tool_verb(struct host_run *r, json_t *in, struct sb_error *err)
{
	json_t *params = json_object();
	json_error_t why;

	if (r->args.params) {
		json_decref(params);
		params = json_loads(r->args.params, 0, &why);
		if (!json_is_object(params)) {
			json_decref(params);
			json_decref(in);
			return sb_fail(err, SB_E_USAGE, "--params must be a JSON object");
		}
	}
	host_request_call_id(in, &r->args);
	(void)json_object_set_new(in, "Params", params);
	return host_call_stream(r, in, on_tool, err);
}

const struct host_verb cmd_host_tool = {
	.name = "tool",
	.args = "SESSION TOOL",
	.help = "run a tool and print its result",
	.opts = "params,call-id",
	.min_args = 2,
	.max_args = 2,
	.method = "ExecuteToolStream",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0), FIELD_OPERAND("ToolName", 1)),
	.run = tool_verb,
};
