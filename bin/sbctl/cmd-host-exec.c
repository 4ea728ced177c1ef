/* SPDX-License-Identifier: MIT */
/* sbctl host exec: a command in a session, its output as it comes. */
#include "config.h"

#include <stdio.h>

#include <bin/sbctl/host.h>

/* What a command prints as it comes; its exit status is ours. */
static void
on_exec(struct host_run *r, const json_t *msg)
{
	const json_t *progress = json_object_get(msg, "Progress"),
		     *res = json_object_get(msg, "Response");
	const json_t *code = json_object_get(res, "ExitCode");

	if (json_is_object(progress) && !r->args.json)
		host_print_text(json_is_true(json_object_get(progress, "IsError")) ? stderr :
										     stdout,
			json_object_get(progress, "Content"));
	if (!json_is_object(res))
		return;
	if (json_is_integer(code))
		r->status = (int)(json_integer_value(code) & 255);
	else if (json_is_true(json_object_get(res, "IsError")))
		r->status = 1;
	if (!json_is_integer(code) && r->status && !r->args.json) {
		host_print_text(stderr, json_object_get(res, "Content"));
		(void)fputc('\n', stderr);
	}
	if (json_is_true(json_object_get(res, "TimedOut")))
		(void)fprintf(stderr, "sbctl: the command ran out of time\n");
}

static int
exec_verb(struct host_run *r, json_t *in, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf cmd;
	int code = host_request_command(&r->args, &cmd, err);

	if (code == 0 &&
		json_object_set_new(in, "Params",
			json_pack("{s:s}", "cmd", (const char *)cmd.data)) < 0)
		code = sb_fail(err, SB_E_USAGE, "arguments must be UTF-8");
	if (code < 0) {
		json_decref(in);
		return code;
	}
	host_request_call_id(in, &r->args);
	(void)json_object_set_new(in, "ToolName", json_string("bash"));
	return host_call_stream(r, in, on_exec, err);
}

const struct host_verb cmd_host_exec = {
	.name = "exec",
	.args = "SESSION COMMAND [ARG]...",
	.help = "run a shell command in a session",
	.opts = "call-id",
	.min_args = 2,
	.max_args = -1,
	.method = "ExecuteToolStream",
	.fields = FIELDS(FIELD_OPERAND("SessionID", 0)),
	.run = exec_verb,
};
