/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/tool/toolcall.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/path.h>

int
sb_toolcall_str(const struct sb_toolcall *c, const char *name, const char *alias, bool required,
	const char **out, struct sb_error *err)
{
	const json_t *v = json_object_get(c->params, name);

	if (!v && alias)
		v = json_object_get(c->params, alias);
	*out = json_string_value(v);
	if (v && !json_is_null(v) && (!*out || strlen(*out) != json_string_length(v)))
		return sb_fail(err, SB_E_INVAL, "%s %s must be text", c->req->tool, name);
	if (required && !*out)
		return sb_fail(err, SB_E_INVAL, "%s %s is required", c->req->tool, name);
	return 0;
}

int
sb_toolcall_int(const struct sb_toolcall *c, const char *name, int64_t def, int64_t min,
	int64_t max, int64_t *out, struct sb_error *err)
{
	const json_t *v = json_object_get(c->params, name);

	*out = def;
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_number(v) || json_number_value(v) < (double)min ||
		json_number_value(v) > (double)max)
		return sb_fail(err, SB_E_INVAL, "%s %s must be in range [%lld,%lld]", c->req->tool,
			name, (long long)min, (long long)max);
	*out = (int64_t)json_number_value(v);
	return 0;
}

int
sb_toolcall_bool(const struct sb_toolcall *c, const char *name, bool *out, struct sb_error *err)
{
	const json_t *v = json_object_get(c->params, name);

	*out = json_is_true(v);
	if (v && !json_is_boolean(v) && !json_is_null(v))
		return sb_fail(err, SB_E_INVAL, "%s %s must be true or false", c->req->tool, name);
	return 0;
}

int
sb_toolcall_roots(const struct sb_toolcall *c, struct sb_roots *out, struct sb_error *err)
{
	const char *inside = c->s->rt->ops->workspace;
	int r = sb_roots_open((const char *const *)&c->workspace, 1, out, err);

	if (r < 0 || !inside)
		return r;
	free(out->v[0].given);
	out->v[0].given = strdup(inside);
	if (out->v[0].given)
		return 0;
	sb_roots_close(out);
	return sb_fail(err, SB_E_NOMEM, "tool call");
}

int
sb_toolcall_alive(const struct sb_toolcall *c, struct sb_error *err)
{
	if (sb_cancel_requested(c->run.kill) || (c->call && sb_cancel_requested(c->call->cancel)))
		return sb_fail(err, SB_E_CANCELED, "tool call: canceled");
	if (sb_deadline_passed(c->deadline) || (c->call && sb_deadline_passed(c->call->deadline)))
		return sb_fail(err, SB_E_TIMEOUT, "tool call: deadline passed");
	return 0;
}

int
sb_toolcall_result(struct sb_host_tool_result *out, struct sb_buf *text, bool is_error,
	struct sb_error *err)
{
	int r = sb_buf_check(text, "result", err);

	if (r < 0)
		return r;
	out->text = (char *)sb_buf_detach(text, &out->text_len);
	if (!out->text)
		return sb_fail(err, SB_E_NOMEM, "result");
	out->is_error = is_error;
	out->tier = 1;
	return 0;
}

int
sb_toolcall_says(struct sb_host_tool_result *out, bool is_error, struct sb_error *err,
	const char *fmt, ...)
{
	sb_auto(sb_buf) struct sb_buf text;
	va_list ap;

	sb_buf_init(&text, SB_TOOL_TEXT_MAX);
	va_start(ap, fmt);
	sb_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	return sb_toolcall_result(out, &text, is_error, err);
}

int
sb_toolcall_failed(struct sb_host_tool_result *out, const struct sb_error *why,
	struct sb_error *err)
{
	switch (why->code) {
	case SB_E_NOMEM:
	case SB_E_CANCELED:
	case SB_E_TIMEOUT:
	case SB_E_RUNTIME:
		if (err)
			*err = *why;
		return why->code;
	default: return sb_toolcall_says(out, true, err, "%s", why->msg);
	}
}

int
sb_toolcall_exec(struct sb_toolcall *c, const char *const *argv, const char *const *env,
	int64_t timeout_ms, size_t max_output, struct sb_toolrun_out *run, struct sb_error *err)
{
	struct sb_toolrun_opts o = { .h = c->h,
		.s = c->s,
		.workspace = c->workspace,
		.argv = argv,
		.env = env,
		.mark = c->mark,
		.res = c->req->res,
		.deadline = c->deadline,
		.timeout_ms = timeout_ms,
		.call = c->call,
		.kill = c->run.kill,
		.progress = c->req->progress,
		.arg = c->req->arg,
		.max_output = max_output };

	return sb_toolrun_exec(&o, run, err);
}

void
sb_toolcall_flags(const struct sb_toolcall *c, const struct sb_toolrun_out *run,
	struct sb_host_tool_result *out)
{
	out->has_exit = true;
	out->exit_code = run->exit_code;
	out->is_error = run->exit_code != 0;
	out->timed_out = run->timed_out;
	out->truncated = run->truncated;
	out->oom = run->oom;
	out->tier = c->s->rt->ops->isolates ? 2 : 1;
}
