/* SPDX-License-Identifier: MIT */
/*
 * The tools of an agent loop, on a sandbox host elsewhere or in this process: agent
 * ADDRESS|DIRECTORY CMD... runs each command.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sb/env.h>

static void
show(const void *data, size_t len, bool is_stderr, void *arg)
{
	(void)arg;
	(void)fwrite(data, 1, len, is_stderr ? stderr : stdout);
}

int
main(int argc, char **argv)
{
	struct sb_env_host_opts opts = SB_ENV_HOST_OPTS_INIT;
	struct sb_host_opts here = SB_HOST_OPTS_INIT;
	struct sb_host_create_opts create = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_tool_result result = { 0 };
	struct sb_error err = { 0 };
	struct sb_env *env = NULL;
	char state[200], sessions[200], params[4096];
	int code = 0;

	if (argc < 3)
		return fprintf(stderr, "usage: agent ADDRESS|DIRECTORY CMD...\n"), 2;
	signal(SIGPIPE, SIG_IGN);
	snprintf(state, sizeof state, "%s/state", argv[1]);
	snprintf(sessions, sizeof sessions, "%s/sessions", argv[1]);
	here.storage = SB_HOST_LOCAL_DISK;
	here.runtime = SB_HOST_RUNTIME_AUTO;
	here.state_dir = state;
	here.sessions_root_dir = sessions;
	create.empty = true;
	if (strncmp(argv[1], "unix:", 5) == 0 || strstr(argv[1], "://"))
		opts.address = argv[1];
	else
		opts.host = &here;
	struct sb_env_host *host = sb_env_host_open(&opts, &err);
	if (!host || sb_env_create(host, &create, SB_ENV_NEED_PAUSE, NULL, &env, &err) < 0)
		return fprintf(stderr, "%s\n", err.msg), 1;
	for (int i = 2; i < argc && code == 0; i++) {
		struct sb_host_tool_request call = SB_HOST_TOOL_REQUEST_INIT;

		snprintf(params, sizeof params, "{\"cmd\":\"%s\"}", argv[i]);
		call.tool = "bash";
		call.params = params;
		call.progress = show;
		code = sb_env_execute(env, &call, NULL, &result, &err) < 0 ? 125 : result.exit_code;
		sb_host_tool_result_clear(&result);
	}
	if (code == 125)
		fprintf(stderr, "%s\n", err.msg);
	if (sb_env_destroy(env, true, NULL, &err) < 0)
		fprintf(stderr, "%s\n", err.msg);
	sb_env_free(env);
	sb_env_host_free(host);
	return code;
}
