/* SPDX-License-Identifier: MIT */
/* sbctl mcp: the tools of a sandbox for a client of the Model Context Protocol, over stdio. */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <bin/sbctl/host.h>
#include <bin/sbctl/options.h>
#include <sb/mcp.h>

SB_CLEANUP_PTR(sb_env, sb_env_free)
SB_CLEANUP_PTR(sb_env_host, sb_env_host_free)

/* A turn at the end of each tool that may have changed something. */
struct mcp_turns {
	struct ctl *ctl;
	struct sb_sandbox *sb;
	pthread_mutex_t mu; /* a sandbox is used by one at a time */
};

static void
on_done(const struct sb_host_tool *tool, void *arg)
{
	struct mcp_turns *t = arg;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	struct sb_call call = t->ctl->call;
	struct sb_error err = { 0 };
	int r;

	call.progress = NULL;
	(void)pthread_mutex_lock(&t->mu);
	r = sb_sandbox_turn(t->sb, &call, &res, &err);
	(void)pthread_mutex_unlock(&t->mu);
	if (r < 0)
		(void)fprintf(stderr, "sbctl: turn after %s: %s\n", tool->name, err.msg);
}

static int
serve(struct ctl *ctl, struct sb_env *env, const char *dir, struct mcp_turns *turns,
	struct sb_error *err)
{
	struct sb_mcp_opts o = SB_MCP_OPTS_INIT;
	int r;

	o.env = env;
	o.dir = dir;
	o.cancel = ctl->cancel;
	o.log = ctl->call.log;
	o.done = turns ? on_done : NULL;
	o.arg = turns;
	(void)signal(SIGPIPE, SIG_IGN);
	r = sb_mcp_serve(&o, err);
	/* Clients end a server that does not go by itself with SIGTERM. */
	return r == SB_E_CANCELED ? 0 : r;
}

/* A session of a host that the user names. */
static int
serve_session(struct ctl *ctl, struct sb_error *err)
{
	const struct sb_host_call limits = { .cancel = ctl->cancel,
		.deadline = ctl->call.deadline };
	struct sb_env_host_opts o = SB_ENV_HOST_OPTS_INIT;
	sb_auto(sb_env_host) struct sb_env_host *host = NULL;
	sb_auto(sb_env) struct sb_env *env = NULL;
	sb_auto(sb_buf) struct sb_buf token = { 0 };
	int r = host_token(ctl->a.token_file, &token, &o.token, err);

	if (r < 0)
		return r;
	o.address = ctl->a.host;
	o.ca_file = ctl->a.ca_file;
	host = sb_env_host_open(&o, err);
	if (token.len > 0)
		explicit_bzero(token.data, token.len);
	if (!host)
		return err->code;
	r = sb_env_attach(host, ctl->a.session, &limits, &env, err);
	return r < 0 ? r : serve(ctl, env, NULL, NULL, err);
}

/* A sandbox on record, which is awake. */
static int
serve_sandbox(struct ctl *ctl, struct sb_sandbox *sb, int sigfd, void *arg, struct sb_error *err)
{
	struct mcp_turns turns = { .ctl = ctl, .sb = sb };
	sb_auto(sb_env_host) struct sb_env_host *host = NULL;
	sb_auto(sb_env) struct sb_env *env = NULL;
	sb_autofree char *dir = NULL;
	int r;

	(void)sigfd;
	(void)arg;
	if (ctl->a.turn_tools && sb_sandbox_state(sb)->sync_mode != SB_SYNC_MODE_TURN)
		return sb_fail(err, SB_E_STATE,
			"--turn-tools: sandbox %s has sync mode %s, not turn-bidirectional",
			sb_sandbox_state(sb)->sandbox_id,
			sb_sync_mode_name(sb_sandbox_state(sb)->sync_mode));
	r = sb_sandbox_env(sb, &ctl->call, &host, &env, &dir, err);
	if (r < 0)
		return r;
	(void)pthread_mutex_init(&turns.mu, NULL);
	r = serve(ctl, env, dir, ctl->a.turn_tools ? &turns : NULL, err);
	(void)pthread_mutex_destroy(&turns.mu);
	return r;
}

static int
mcp_verb(struct ctl *ctl, struct sb_error *err)
{
	const char *env = getenv("SANDBOX_HOST");
	sb_auto(sb_state) struct sb_state s = SB_STATE_INIT;
	sb_autofree char *id = NULL;

	/* A session that no record knows is one of the host that sbctl host talks to. */
	if (!ctl->a.host && ctl->a.session && env && *env &&
		sb_keeper_load(ctl->keeper, ctl->a.session, &s, NULL) == SB_E_SANDBOX_NOT_FOUND)
		ctl->a.host = env;
	if (ctl->a.host && !ctl->a.session)
		return sb_fail(err, SB_E_USAGE, "--host needs --session ID: which of its sessions");
	if (ctl->a.host && ctl->a.turn_tools)
		return sb_fail(err, SB_E_USAGE,
			"--turn-tools is for a sandbox on record, not for a session of --host");
	if (ctl->a.host)
		return serve_session(ctl, err);
	id = ctl_pick(ctl, ctl->a.session, err);
	return id ? ctl_work_in(ctl, id, serve_sandbox, NULL, err) : err->code;
}

static const struct sb_opt options[] = {
	OPT_TEXT('s', "session", session, "ID", "sandbox of sbctl ls, or session of --host"),
	OPT_TEXT('H', "host", host, "ADDR", "unix:PATH, http://HOST:PORT or https://..."),
	OPT_TEXT(0, "token-file", token_file, "FILE", "file with the bearer token"),
	OPT_TEXT(0, "ca-file", ca_file, "FILE", "authorities for https (PEM)"),
	OPT_FLAG(0, "turn-tools", turn_tools,
		"turn-bidirectional: sync after each tool that may have changed something"),
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_mcp = {
	.cmd = {
		.name = "mcp",
		.args = "",
		.help = "offer the tools of a sandbox to an MCP client, over stdin and stdout",
		.details = "Speaks the Model Context Protocol. The sandbox is one of backend host "
			   "on record (without --session, the only one of this directory), or a "
			   "session of --host. One that nobody works with is woken up, and synced "
			   "back at the end.",
		.opts = options,
	},
	.run = mcp_verb,
};
