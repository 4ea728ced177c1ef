/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/tool/toolcall.h>

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
