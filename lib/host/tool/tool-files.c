/* SPDX-License-Identifier: MIT */
/*
 * The tools that work on files. The host knows their names; a worker of the session reads their
 * parameters and runs them (lib/host/files/).
 */
#include "config.h"

#include <stdio.h>

#include <host/files/filepool.h>
#include <host/host.h>
#include <host/runtime/runtime.h>
#include <host/tool/tool-table.h>

static int
run(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err)
{
	const uid_t owner = sb_runtime_owner(sb_host_options(c->h), c->workspace);
	char user[16];
	const char *const argv[] = { sb_host_files_helper(c->h), owner ? "-u" : NULL, user, NULL };
	const char *inside = c->s->rt->ops->workspace;
	const struct sb_filepool_call q = { .argv = argv,
		.workspace = c->workspace,
		.place = &c->s->place,
		.root = inside ? inside : c->workspace,
		.dir = c->req->dir ? c->req->dir : "",
		.tool = c->req->tool,
		.params = c->req->params ? c->req->params : "{}",
		.again = c->run.again,
		.text_max = c->req->res.max_output,
		.deadline = c->deadline,
		.kill = c->run.kill,
		.call = c->call };
	struct sb_filepool_answer a;
	int r;

	if (!argv[0])
		return sb_fail(err, SB_E_RUNTIME, "the helper sb-files is not found beside sb-box");
	(void)snprintf(user, sizeof user, "%u", (unsigned)owner);
	r = sb_filepool_run(&c->s->files, &q, &a, err);
	if (r < 0)
		return r;
	out->text = a.text;
	out->text_len = a.len;
	out->is_error = a.is_error;
	out->truncated = a.truncated;
	out->tier = 1;
	return 0;
}

const struct sb_tool sb_tool_files_table[] = {
	{ "read_file", false, NULL, run, true },
	{ "write_file", false, NULL, run, false },
	{ "edit_file", false, NULL, run, false },
	{ "ls", false, NULL, run, true },
	{ "grep", false, NULL, run, true },
	{ "glob", false, NULL, run, true },
	{ NULL, false, NULL, NULL, false },
};
