/* SPDX-License-Identifier: MIT */
/* Fills and frees struct sb_prepared, which prepare gives its caller. */
#include "config.h"

#include <provider/provider.h>

#include <string.h>

int
sb_prepared_launch(const struct sb_prepare_request *req, struct sb_prepared *out,
	struct sb_error *err)
{
	int r = 0;

	out->launch = (struct sb_launch_spec)SB_LAUNCH_SPEC_INIT;
	if (req->agent_command)
		r = sb_texts_add(&out->keep, req->agent_command, err);
	if (r == 0)
		r = sb_texts_copy(req->agent_env, &out->keep_env, err);
	if (r < 0)
		return r;
	out->launch.command = out->keep ? out->keep[0] : NULL;
	out->launch.cwd = out->state.runtime_root;
	out->launch.dirs = (const char *const *)out->state.runtime_dirs;
	out->launch.env = (const char *const *)out->keep_env;
	return 0;
}

void
sb_prepared_free(struct sb_prepared *p)
{
	sb_tool_host_free(p->tools);
	sb_launcher_free(p->launcher);
	sb_state_free(&p->state);
	sb_texts_free(p->keep);
	sb_texts_free(p->keep_env);
	sb_texts_free(p->keep_dirs);
	memset(p, 0, sizeof *p);
}
