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
	static const char *const lead[] = { "/bin/sh", "-c", "cd \"./$1\" && shift && exec \"$@\"",
		"sh", NULL };
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
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

	if (c->req->dir && *c->req->dir) {
		sb_strlist_add_all(&l, lead);
		sb_strlist_add(&l, c->req->dir);
		sb_strlist_add_all(&l, argv);
		if (sb_strlist_check(&l, err) < 0)
			return SB_E_NOMEM;
		o.argv = (const char *const *)l.v;
	}
	return sb_toolrun_exec(&o, run, err);
}

size_t
sb_toolcall_output(const struct sb_toolcall *c)
{
	return c->req->res.max_output ? (size_t)c->req->res.max_output : SB_HOST_OUTPUT_DEFAULT;
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
