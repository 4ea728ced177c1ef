/* SPDX-License-Identifier: MIT */
/* Fills and frees struct sb_prepared, which prepare gives its caller. */
#include "config.h"

#include <provider/provider.h>

#include <string.h>

int
sb_prepared_launch(const struct sb_prepare_request *req, struct sb_prepared *out,
	struct sb_error *err)
{
	int r;

	out->launch = (struct sb_launch_spec)SB_LAUNCH_SPEC_INIT;
	if (req->agent_command)
		sb_strlist_add(&out->keep, req->agent_command);
	sb_strlist_add_all(&out->keep_env, req->agent_env);
	if (req->resume_acp_state)
		sb_strlist_putf(&out->keep_env, "SB_RESUME_ACP_STATE=%s", req->resume_acp_state);
	r = sb_strlist_check(&out->keep, err);
	if (r == 0)
		r = sb_strlist_check(&out->keep_env, err);
	if (r < 0)
		return r;
	out->launch.command = out->keep.n ? out->keep.v[0] : NULL;
	out->launch.cwd = out->state.runtime_root;
	out->launch.dirs = sb_strlist_borrow(&out->state.runtime_dirs);
	out->launch.env = sb_strlist_borrow(&out->keep_env);
	return 0;
}

void
sb_prepared_free(struct sb_prepared *p)
{
	sb_tool_host_free(p->tools);
	sb_launcher_free(p->launcher);
	sb_state_free(&p->state);
	sb_strlist_free(&p->keep);
	sb_strlist_free(&p->keep_env);
	sb_strlist_free(&p->keep_dirs);
	memset(p, 0, sizeof *p);
}
