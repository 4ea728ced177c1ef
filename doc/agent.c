/* SPDX-License-Identifier: MIT */
/*
 * The tools of an agent loop, in a session of a sandbox host:
 *
 *     agent ADDRESS CMD...       of a host elsewhere: unix:PATH, http://HOST:PORT, https://...
 *     agent DIRECTORY CMD...     of a host in this process, which keeps its sessions there
 *
 * Runs each command until one fails; its exit status is the last one's.
 * Built outside the tree:  cc agent.c $(pkg-config --cflags --libs libsandbox)
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sb/env.h>

#define NOT_RUN 125

/* {"cmd":"TEXT"} with the text as a JSON string. What a model writes has quotes and newlines. */
static char *
bash_params(const char *text)
{
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	if (!f)
		return NULL;
	fputs("{\"cmd\":\"", f);
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			fprintf(f, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(f, "\\u%04x", (unsigned char)*text);
		else
			fputc(*text, f);
	fputs("\"}", f);
	if (fclose(f) == 0)
		return out;
	free(out);
	return NULL;
}

/* What the tool prints, as it comes. */
static void
show(const void *data, size_t len, bool is_stderr, void *arg)
{
	(void)arg;
	(void)fwrite(data, 1, len, is_stderr ? stderr : stdout);
}

/* One tool call. Its exit status, or NOT_RUN and an error. */
static int
bash(struct sb_env *env, const char *text, struct sb_error *err)
{
	struct sb_host_tool_request call = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_tool_result result = { 0 };
	char *params = bash_params(text);
	int status = NOT_RUN;

	if (!params)
		return NOT_RUN;
	call.tool = "bash";
	call.params = params;
	call.progress = show;
	if (sb_env_execute(env, &call, NULL, &result, err) == 0)
		status = result.exit_code;
	sb_host_tool_result_clear(&result);
	free(params);
	return status;
}

/* A host elsewhere, or one in this process with its state and its sessions in `where`. */
static struct sb_env_host *
open_host(const char *where, struct sb_error *err)
{
	struct sb_env_host_opts opts = SB_ENV_HOST_OPTS_INIT;
	struct sb_host_opts here = SB_HOST_OPTS_INIT;
	char state[200], sessions[200];

	if (strncmp(where, "unix:", 5) == 0 || strstr(where, "://")) {
		opts.address = where;
		return sb_env_host_open(&opts, err);
	}
	snprintf(state, sizeof state, "%s/state", where);
	snprintf(sessions, sizeof sessions, "%s/sessions", where);
	here.storage = SB_HOST_LOCAL_DISK;
	here.runtime = SB_HOST_RUNTIME_AUTO;
	here.state_dir = state;
	here.sessions_root_dir = sessions;
	opts.host = &here;
	return sb_env_host_open(&opts, err);
}

int
main(int argc, char **argv)
{
	struct sb_host_create_opts create = SB_HOST_CREATE_OPTS_INIT;
	struct sb_env_host *host;
	struct sb_env *env = NULL;
	struct sb_error err = { 0 };
	int status = NOT_RUN;

	if (argc < 3) {
		fprintf(stderr, "usage: agent ADDRESS|DIRECTORY CMD...\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN); /* a process that is a host must */
	create.empty = true;
	host = open_host(argv[1], &err);
	if (host && sb_env_create(host, &create, SB_ENV_NEED_PAUSE, NULL, &env, &err) == 0) {
		status = 0;
		for (int i = 2; i < argc && status == 0; i++)
			status = bash(env, argv[i], &err);
		/* The session would stay with the host; this one is of no use to anybody else. */
		(void)sb_env_destroy(env, true, NULL, status == NOT_RUN ? NULL : &err);
	}
	if (err.code < 0)
		fprintf(stderr, "agent: %s\n", err.msg);
	sb_env_free(env);
	sb_env_host_free(host);
	return status;
}
