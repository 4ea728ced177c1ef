/* SPDX-License-Identifier: MIT */
/* The tool "bash": a command line, run by a shell in the session's runtime. */
#include "config.h"

#include <unistd.h>

#include <host/tool/tool-table.h>

static void
bash_text(const struct sb_toolrun_out *run, int64_t ms, struct sb_buf *text)
{
	sb_buf_add(text, run->out.data, run->out.len);
	if (run->errs.len) {
		if (text->len && text->data[text->len - 1] != '\n')
			sb_buf_add_char(text, '\n');
		sb_buf_add_str(text, "STDERR:\n");
		sb_buf_add(text, run->errs.data, run->errs.len);
	}
	if (text->len == 0)
		sb_buf_add_str(text, "(no output)");
	if (text->data[text->len - 1] != '\n')
		sb_buf_add_char(text, '\n');
	if (run->truncated)
		sb_buf_add_str(text, "(output truncated)\n");
	if (run->timed_out)
		sb_buf_add_str(text, "(timed out)\n");
	if (run->oom)
		sb_buf_add_str(text, "(out of memory: the kernel killed a process)\n");
	sb_buf_addf(text, "Exit code: %d\nDuration: %lldms", run->exit_code, (long long)ms);
}

static int
bash_run(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err)
{
	const char *const argv[] = { access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh", "-c",
		sb_params_str(&c->params, "cmd"), NULL };
	int64_t ms = sb_params_int(&c->params, "timeout_ms");
	sb_auto(sb_toolrun_out) struct sb_toolrun_out run = { 0 };
	sb_auto(sb_buf) struct sb_buf text;
	int64_t start = sb_now_ms();
	int r = sb_toolcall_exec(c, argv, NULL, ms, sb_toolcall_output(c), &run, err);

	sb_buf_init(&text, SB_TOOL_TEXT_MAX);
	if (r < 0)
		return r;
	bash_text(&run, sb_now_ms() - start, &text);
	r = sb_toolcall_result(out, &text, false, err);
	if (r == 0)
		sb_toolcall_flags(c, &run, out);
	return r;
}

const struct sb_tool sb_tool_shell_table[] = {
	{ "bash", true, NULL, bash_run, false },
	{ NULL, false, NULL, NULL, false },
};
