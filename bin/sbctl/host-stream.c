/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <bin/sbctl/host.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/quote.h>
#include <base/random.h>
#include <base/str.h>
#include <base/base64.h>
#include <sb/log.h>

/* Sends the request and hands every message, parsed, to `fn`. */
struct reader {
	struct host_run *run;
	void (*fn)(struct host_run *r, const json_t *msg);
};

static int
on_message(const char *json, size_t len, void *arg, struct sb_error *err)
{
	struct reader *rd = arg;
	json_t *msg;

	if (rd->run->args.json) {
		(void)printf("%s\n", json);
		(void)fflush(stdout);
	}
	msg = json_loadb(json, len, JSON_ALLOW_NUL, NULL);
	if (!msg)
		return sb_fail(err, SB_E_PROTO, "the host's message is not JSON");
	rd->fn(rd->run, msg);
	json_decref(msg);
	return 0;
}

static int
stream(struct host_run *r, json_t *in, void (*fn)(struct host_run *, const json_t *),
	struct sb_error *err)
{
	struct reader rd = { r, fn };
	sb_autofree char *text = in ? json_dumps(in, JSON_COMPACT) : NULL;

	json_decref(in);
	if (!text)
		return sb_fail(err, SB_E_USAGE, "arguments must be UTF-8");
	return sb_rpc_client_stream(r->client, r->verb->method, text, &r->wait, on_message, &rd,
		err);
}

static void
write_text(FILE *f, const json_t *text)
{
	(void)fwrite(json_string_value(text), 1, json_string_length(text), f);
	(void)fflush(f);
}

/* What a command prints as it comes; its exit status is ours. */
static void
on_exec(struct host_run *r, const json_t *msg)
{
	const json_t *progress = json_object_get(msg, "Progress"),
		     *res = json_object_get(msg, "Response");
	const json_t *code = json_object_get(res, "ExitCode");

	if (json_is_object(progress) && !r->args.json)
		write_text(json_is_true(json_object_get(progress, "IsError")) ? stderr : stdout,
			json_object_get(progress, "Content"));
	if (!json_is_object(res))
		return;
	if (json_is_integer(code))
		r->status = (int)(json_integer_value(code) & 255);
	else if (json_is_true(json_object_get(res, "IsError")))
		r->status = 1;
	if (!json_is_integer(code) && r->status && !r->args.json) {
		write_text(stderr, json_object_get(res, "Content"));
		(void)fputc('\n', stderr);
	}
	if (json_is_true(json_object_get(res, "TimedOut")))
		(void)fprintf(stderr, "sbctl: the command ran out of time\n");
}

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
	write_text(stdout, text);
	if (len > 0 && json_string_value(text)[len - 1] != '\n')
		(void)fputc('\n', stdout);
}

/* A name no other call has. */
static json_t *
call_id(const struct host_args *a)
{
	uint8_t raw[12];
	char hex[2 * sizeof raw + 1];

	if (a->call_id)
		return json_string(a->call_id);
	if (sb_random(raw, sizeof raw, NULL) < 0)
		return NULL;
	return json_string(sb_str_hex(raw, sizeof raw, hex));
}

/* A single word is a line of shell; several are a command with its arguments. */
static int
command_line(const struct host_args *a, struct sb_buf *cmd, struct sb_error *err)
{
	sb_buf_init(cmd, 4 << 20);
	if (a->n == 2)
		sb_buf_add_str(cmd, a->v[1]);
	for (int i = 1; a->n > 2 && i < a->n; i++) {
		if (i > 1)
			sb_buf_add_char(cmd, ' ');
		sb_quote_word(cmd, a->v[i]);
	}
	return sb_buf_check(cmd, "command", err);
}

/* Our streams are the command's; only a signal ends it early. */
int
host_run_attach(struct host_run *r, struct sb_error *err)
{
	static const int fds[3] = { 0, 1, 2 };
	struct sb_rpc_wait wait = { r->wait.cancel, SB_NEVER };
	json_t *in = host_session_request(&r->args);
	sb_autofree char *text = NULL;
	sb_auto(sb_buf) struct sb_buf cmd;
	int code = command_line(&r->args, &cmd, err);

	(void)signal(SIGPIPE, SIG_IGN);
	if (code == 0)
		code = host_put_pairs(in, "Env", &r->args.env, err);
	if (code == 0) {
		(void)json_object_set_new(in, "Command", json_string((const char *)cmd.data));
		text = json_dumps(in, JSON_COMPACT);
		code = text ? sb_rpc_attach(&r->how, text, fds, &wait, &r->status, err) :
			      sb_fail(err, SB_E_USAGE, "arguments must be UTF-8");
	}
	json_decref(in);
	return code;
}

int
host_run_exec(struct host_run *r, struct sb_error *err)
{
	json_t *in = host_session_request(&r->args);
	sb_auto(sb_buf) struct sb_buf cmd;
	int code = command_line(&r->args, &cmd, err);

	if (code < 0) {
		json_decref(in);
		return code;
	}
	(void)json_object_set_new(in, "ToolCallID", call_id(&r->args));
	(void)json_object_set_new(in, "ToolName", json_string("bash"));
	(void)json_object_set_new(in, "Params", json_pack("{s:s}", "cmd", (const char *)cmd.data));
	return stream(r, in, on_exec, err);
}

int
host_run_tool(struct host_run *r, struct sb_error *err)
{
	json_t *in = host_session_request(&r->args), *params = json_object();
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
	(void)json_object_set_new(in, "ToolCallID", call_id(&r->args));
	(void)json_object_set_new(in, "ToolName", json_string(r->args.v[1]));
	(void)json_object_set_new(in, "Params", params);
	return stream(r, in, on_tool, err);
}

static void
on_log(struct host_run *r, const json_t *msg)
{
	const char *name = json_string_value(json_object_get(msg, "Stream"));
	const json_t *data = json_object_get(msg, "Data");
	sb_auto(sb_buf) struct sb_buf raw;

	sb_buf_init(&raw, json_string_length(data) + 1);
	if (r->args.json || !json_is_string(data) ||
		!sb_base64_decode(json_string_value(data), json_string_length(data), &raw))
		return;
	(void)fwrite(raw.data, 1, raw.len, name && strcmp(name, "stderr") == 0 ? stderr : stdout);
	(void)fflush(stdout);
}

int
host_run_logs(struct host_run *r, struct sb_error *err)
{
	json_t *in = host_session_request(&r->args);

	(void)json_object_set_new(in, "ProcessID", json_string(r->args.v[1]));
	(void)json_object_set_new(in, "Follow", json_boolean(r->args.follow));
	if (r->args.stream)
		(void)json_object_set_new(in, "Stream", json_string(r->args.stream));
	return stream(r, in, on_log, err);
}

static void
on_event(struct host_run *r, const json_t *msg)
{
	static const char *const fields[] = { "Time", "Kind", "SessionID", "State", "Subject" };
	char buf[512];

	if (r->args.json)
		return;
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		const json_t *v = json_object_get(msg, fields[i]);

		if (json_string_length(v) > 0)
			(void)printf("%s%s", i > 0 ? " " : "",
				sb_escape(json_string_value(v), json_string_length(v), buf,
					sizeof buf));
	}
	(void)printf("\n");
	(void)fflush(stdout);
}

int
host_run_events(struct host_run *r, struct sb_error *err)
{
	json_t *in = json_object(), *kinds = json_array();
	int code;

	if (r->args.n > 0)
		(void)json_object_set_new(in, "SessionID", json_string(r->args.v[0]));
	for (size_t i = 0; i < r->args.kinds.n; i++)
		(void)json_array_append_new(kinds, json_string(r->args.kinds.v[i]));
	(void)json_object_set_new(in, "Kinds", kinds);
	code = stream(r, in, on_event, err);
	/* Ctrl-C is how one ends it. */
	return code == SB_E_CANCELED ? 0 : code;
}
