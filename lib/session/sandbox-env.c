/* SPDX-License-Identifier: MIT */
/* A sandbox that is a session of a sandbox host, as an environment (declared in sb/session.h). */
#include "config.h"

#include <session/session-priv.h>

#include <stdlib.h>
#include <string.h>

#include <provider/toolset.h>
#include <sb/env.h>

/* The directory of the project in the session's workspace, relative to it. New text. */
static char *
dir_in(const char *runtime_root, const char *workspace, struct sb_error *err)
{
	size_t n = strlen(workspace);
	char *dir;

	if (!runtime_root || strncmp(runtime_root, workspace, n) != 0 ||
		(runtime_root[n] && runtime_root[n] != '/')) {
		(void)sb_fail(err, SB_E_UNSUPPORTED,
			"the sandbox works in %s, which is not in its workspace %s",
			runtime_root ? runtime_root : "(nowhere)", workspace);
		return NULL;
	}
	runtime_root += n;
	dir = strdup(runtime_root + strspn(runtime_root, "/"));
	if (!dir)
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	return dir;
}

int
sb_sandbox_env(struct sb_sandbox *sb, const struct sb_call *call, struct sb_env_host **out_host,
	struct sb_env **out_env, char **out_dir, struct sb_error *err)
{
	const struct sb_host_call limits = { .cancel = sb_call_cancel(call),
		.deadline = sb_call_deadline(call) };
	sb_autofree char *workspace = NULL;
	struct sb_error own = { 0 };
	struct sb_env_host *host;
	struct sb_env *env = NULL;
	int r;

	err = err ? err : &own;
	host = sb_provider_env_host(sb->provider, &sb->state, err);
	if (!host)
		return err->code;
	r = sb_env_attach(host, sb->state.sandbox_id, &limits, &env, err);
	if (r == 0)
		r = sb_env_workspace(env, &limits, &workspace, err);
	if (r == 0)
		r = (*out_dir = dir_in(sb->state.runtime_root, workspace, err)) ? 0 : err->code;
	if (r < 0) {
		sb_env_free(env);
		sb_env_host_free(host);
		return r;
	}
	*out_host = host;
	*out_env = env;
	return 0;
}
