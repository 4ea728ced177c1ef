/* SPDX-License-Identifier: MIT */
/*
 * sbctl docker agent: runs an agent of Docker in a sandbox of sbx or docker sandbox that shares the
 * current directory, as its own program does. This is sb/docker.h from one end to the other.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/spawn.h>
#include <base/str.h>
#include <base/strlist.h>
#include <bin/sbctl/ctl.h>
#include <sb/docker.h>

#define ASK_MS 15000
#define GATEWAY "CAGENT_MODELS_GATEWAY"

/* One run; all owned. */
struct agent_run {
	struct sb_docker *d;
	struct sb_docker_alias *aliases;
	struct sb_docker_token *token;
	struct sb_docker_command c;
	char *here, *config, *extra, *name;
	struct sb_strlist flags, vars;
};

static void
agent_run_free(struct agent_run *a)
{
	sb_docker_token_free(a->token);
	sb_docker_command_free(&a->c);
	sb_docker_alias_free(a->aliases);
	sb_docker_free(a->d);
	free(a->here);
	free(a->config);
	free(a->extra);
	free(a->name);
	sb_strlist_free(&a->flags);
	sb_strlist_free(&a->vars);
}
SB_CLEANUP_VALUE(agent_run, agent_run_free)

static const char *
from_environment(const char *name, void *arg)
{
	(void)arg;
	return getenv(name);
}

static int
open_all(struct ctl *ctl, const char *agent, struct agent_run *a, struct sb_error *err)
{
	struct sb_call soon = sb_call_within(&ctl->call, ASK_MS);
	const char *home = getenv("HOME");
	int r;

	a->here = getcwd(NULL, 0);
	a->config = sb_str_printf("%s/.config/cagent", home ? home : "");
	if (!a->here || !a->config)
		return sb_fail_errno(err, "the current directory");
	a->d = sb_docker_new(true, err);
	r = a->d ? sb_docker_check(a->d, &soon, err) : err->code;
	if (r == 0)
		r = sb_docker_probe(a->d, &soon, err);
	if (r < 0)
		return r;
	a->aliases = sb_docker_alias_load(NULL, err);
	if (!a->aliases)
		return err->code;
	a->extra = sb_docker_extra_workspace(a->here, agent, sb_docker_alias_find, a->aliases);
	return a->extra ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

/* A sandbox that shares what the agent needs; its name is in `a` then. */
static int
ensure(struct ctl *ctl, struct agent_run *a, struct sb_error *err)
{
	struct sb_docker_ensure o = SB_DOCKER_ENSURE_INIT;
	sb_auto(sb_strlist) struct sb_strlist extras = { 0 };
	int r;

	sb_strlist_add(&extras, a->extra);
	for (size_t i = 0; i < ctl->a.also.n; i++)
		sb_strlist_add(&extras, ctl->a.also.v[i]);
	r = sb_strlist_check(&extras, err);
	o.workspace = a->here;
	o.extras = sb_strlist_borrow(&extras);
	o.image = ctl->a.image;
	o.config_dir = a->config;
	o.agent = sb_docker_era_of(a->d) == SB_DOCKER_ERA_C ? "docker-agent" : NULL;
	return r < 0 ? r : sb_docker_ensure(a->d, &o, &ctl->call, &a->name, err);
}

/* Hosts besides those that the sandbox may reach anyway. Only a wrong one stops it. */
static int
allow(struct ctl *ctl, struct agent_run *a, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist hosts = { 0 };
	struct sb_error why = { 0 };
	const char *list = ctl->a.network;
	int r;

	for (; list && *list; list += strcspn(list, ","), list += *list == ',')
		sb_strlist_addf(&hosts, "%.*s", (int)strcspn(list, ","), list);
	r = sb_strlist_check(&hosts, err);
	if (r < 0)
		return r;
	r = sb_docker_allow_hosts(a->d, a->name, sb_strlist_borrow(&hosts), &ctl->call, &why);
	if (r == SB_E_CHILD) {
		sb_log(&ctl->call.log, SB_LOG_WARN, "docker", "%s", why.msg);
		return 0;
	}
	if (r < 0)
		*err = why;
	return r;
}

/* What the agent gets of our environment; with a gateway for its models also a token. */
static int
environment(struct ctl *ctl, const char *agent, struct agent_run *a, struct sb_error *err)
{
	struct sb_docker_token_opts o = SB_DOCKER_TOKEN_OPTS_INIT;
	const char *const gateway[] = { GATEWAY, NULL };
	int r = sb_docker_agent_env(agent, sb_docker_alias_find, a->aliases, from_environment, NULL,
		&ctl->call, &a->flags, &a->vars, err);

	if (r == 0)
		r = sb_docker_env(gateway, from_environment, NULL, &a->flags, &a->vars, err);
	if (r < 0)
		return r;
	o.dir = a->config;
	o.gateway = getenv(GATEWAY);
	err->code = 0;
	a->token = sb_docker_token_start(&o, err);
	return a->token ? 0 : err->code;
}

int
ctl_docker_agent(struct ctl *ctl, struct sb_error *err)
{
	sb_auto(agent_run) struct agent_run a = { 0 };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	const char *agent = ctl->a.v[1];
	int r = open_all(ctl, agent, &a, err);

	if (r == 0)
		r = ensure(ctl, &a, err);
	if (r == 0)
		r = allow(ctl, &a, err);
	if (r == 0)
		r = environment(ctl, agent, &a, err);
	if (r == 0)
		r = sb_docker_exec_command(a.d, a.name, a.here, ctl->a.v + 1,
			sb_strlist_borrow(&a.flags), sb_strlist_borrow(&a.vars), &a.c, err);
	if (r < 0)
		return r;
	if (!ctl->a.quiet)
		sb_log(&ctl->call.log, SB_LOG_WARN, "docker", "agent %s runs in sandbox %s of %s",
			agent, a.name, sb_docker_is_sbx(a.d) ? "sbx" : "docker");
	o.io[0] = o.io[1] = o.io[2] = SB_SPAWN_INHERIT;
	o.own_group = false; /* it is the terminal's foreground */
	o.search_path = true;
	o.env = sb_strlist_borrow(&a.c.env);
	return sb_child_run(sb_strlist_borrow(&a.c.argv), &o, NULL, 0, NULL, NULL, ctl->cancel,
		ctl->call.deadline, err);
}
