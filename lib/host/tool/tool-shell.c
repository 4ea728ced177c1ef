/* SPDX-License-Identifier: MIT */
/* The tool "bash": a command line, run by a shell in the session's runtime. */
#include "config.h"

#include <unistd.h>

#include <host/tool/tool-table.h>

#define BASH_TIMEOUT_MS 120000
#define BASH_OUTPUT_MAX (256u << 10)

/* The command: `cmd`, or `command` as the other generation of tools has it. */
static const char *
bash_cmd(const struct sb_toolcall *c)
{
	const char *cmd = json_string_value(json_object_get(c->params.v, "cmd"));

	return cmd ? cmd : json_string_value(json_object_get(c->params.v, "command"));
}

static int
bash_check(const struct sb_toolcall *c, struct sb_error *err)
{
	const json_t *t = json_object_get(c->params.v, "timeout_ms");

	if (!bash_cmd(c) || !*bash_cmd(c))
		return sb_fail(err, SB_E_INVAL, "bash cmd is required");
	if (t &&
		(!json_is_number(t) || json_number_value(t) < 1 || json_number_value(t) > 86400000))
		return sb_fail(err, SB_E_INVAL, "bash timeout_ms must be in range [1,86400000]");
	return 0;
}

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
		bash_cmd(c), NULL };
	const json_t *t = json_object_get(c->params.v, "timeout_ms");
	int64_t ms = t ? (int64_t)json_number_value(t) : BASH_TIMEOUT_MS;
	uint64_t max = c->req->res.max_output ? c->req->res.max_output : BASH_OUTPUT_MAX;
	sb_auto(sb_toolrun_out) struct sb_toolrun_out run = { 0 };
	sb_auto(sb_buf) struct sb_buf text;
	int64_t start = sb_now_ms();
	int r = sb_toolcall_exec(c, argv, NULL, ms,
		max < SB_TOOL_TEXT_MAX / 4 ? (size_t)max : SB_TOOL_TEXT_MAX / 4, &run, err);

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
	{ "bash", "shell", bash_check, bash_run, false },
	{ NULL, NULL, NULL, NULL, false },
};
