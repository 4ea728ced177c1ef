/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <bin/sbctl/host.h>

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <base/str.h>
#include <bin/sbctl/sbctl.h>

#define DEFAULT_HOST "unix:/run/sbhostd/sbhostd.sock"
#define OPTS_MAX 40
#define TOKEN_MAX 4096
#define AT(field) offsetof(struct host_args, field)

/* The first of these are every verb's. */
#define COMMON 6
static const struct sb_opt all_opts[] = {
	{ 'H', "host", SB_OPT_STRING, AT(host), "ADDR",
		"unix:PATH, http://HOST:PORT or https://...", NULL, 0, 0 },
	{ 0, "token-file", SB_OPT_STRING, AT(token_file), "FILE", "file with the bearer token",
		NULL, 0, 0 },
	{ 0, "ca-file", SB_OPT_STRING, AT(ca_file), "FILE", "authorities for https (PEM)", NULL, 0,
		0 },
	{ 't', "timeout", SB_OPT_TIME, AT(timeout), "TIME", "give up after this long", NULL, 0, 0 },
	{ 0, "json", SB_OPT_FLAG, AT(json), NULL, "print the answer as JSON", NULL, 0, 0 },
	{ 'h', "help", SB_OPT_FLAG, AT(help), NULL, "print help and exit", NULL, 0, 0 },
	{ 0, "id", SB_OPT_STRING, AT(id), "ID", "name of the new session", NULL, 0, 0 },
	{ 'b', "base", SB_OPT_STRING, AT(base), "BASE", "base image to start from", NULL, 0, 0 },
	{ 0, "empty", SB_OPT_FLAG, AT(empty), NULL, "start with an empty workspace", NULL, 0, 0 },
	{ 0, "runtime", SB_OPT_STRING, AT(runtime), "NAME",
		"none, bwrap or gvisor, not weaker than the host's", NULL, 0, 0 },
	{ 0, "network", SB_OPT_STRING, AT(network), "NAME", "none, sandbox or host", NULL, 0, 0 },
	{ 'q', "quota", SB_OPT_SIZE, AT(quota), "SIZE", "limit of the workspace", NULL, 0,
		INT64_MAX },
	{ 'L', "label", SB_OPT_LIST, AT(labels), "KEY=VALUE", "label; may be repeated", NULL, 0,
		0 },
	{ 0, "state", SB_OPT_LIST, AT(states), "STATE", "only in this state; may be repeated", NULL,
		0, 0 },
	{ 'm', "measure", SB_OPT_FLAG, AT(measure), NULL, "measure the space used now", NULL, 0,
		0 },
	{ 'f', "force", SB_OPT_FLAG, AT(force), NULL, "also when snapshots are held", NULL, 0, 0 },
	{ 's', "snapshot", SB_OPT_STRING, AT(snapshot), "NAME",
		"fork from this snapshot, not from now", NULL, 0, 0 },
	{ 0, "params", SB_OPT_STRING, AT(params), "JSON", "parameters of the tool", NULL, 0, 0 },
	{ 0, "call-id", SB_OPT_STRING, AT(call_id), "ID",
		"name of the call; repeated, it runs once", NULL, 0, 0 },
	{ 0, "kill-tools", SB_OPT_FLAG, AT(kill_tools), NULL, "kill running tools first", NULL, 0,
		0 },
	{ 0, "limit", SB_OPT_INT, AT(limit), "N", "print at most so many", NULL, 1, 20000 },
	{ 'e', "env", SB_OPT_LIST, AT(env), "KEY=VALUE", "variable of the process; may be repeated",
		NULL, 0, 0 },
	{ 0, "expose-port", SB_OPT_INT, AT(expose_port), "PORT", "make this port of it reachable",
		NULL, 0, 65535 },
	{ 0, "ready", SB_OPT_TIME, AT(ready), "TIME", "wait so long for the port to answer", NULL,
		0, 600000 },
	{ 0, "signal", SB_OPT_INT, AT(signal), "N", "signal to send (15)", NULL, 1, 64 },
	{ 0, "follow", SB_OPT_FLAG, AT(follow), NULL, "go on until the process ends", NULL, 0, 0 },
	{ 0, "stream", SB_OPT_STRING, AT(stream), "NAME", "stdout or stderr only", NULL, 0, 0 },
	{ 'k', "kind", SB_OPT_LIST, AT(kinds), "KIND",
		"events whose kind begins so; may be repeated", NULL, 0, 0 },
	{ 0, "ttl", SB_OPT_TIME, AT(ttl), "TIME", "how long the token is valid (1h)", NULL, 1000,
		30 * INT64_C(86400000) },
	{ 0, NULL, SB_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0 },
};

static bool
takes(const struct host_verb *v, const char *name)
{
	const char *p = v->opts;
	size_t len = strlen(name);

	while (p && *p) {
		size_t n = strcspn(p, ",");

		if (n == len && memcmp(p, name, n) == 0)
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}

/* The verb as the option parser and the help printer take it. `opts` holds OPTS_MAX entries. */
static struct sb_cmd
as_command(const struct host_verb *v, struct sb_opt *opts)
{
	size_t n = 0;

	for (size_t i = 0; all_opts[i].name; i++)
		if (i < COMMON || takes(v, all_opts[i].name))
			opts[n++] = all_opts[i];
	opts[n] = (struct sb_opt){ 0 };
	return (struct sb_cmd){ .name = v->name,
		.args = v->args,
		.help = v->help,
		.opts = opts,
		.min_args = v->min_args,
		.max_args = v->max_args };
}

static void
print_all(void)
{
	struct sb_cmd cmds[64];
	const struct sb_cmd *list[65] = { NULL };
	static const struct sb_cmd options = { .name = "VERB",
		.args = "[ARG]...",
		.help = "Options, of which each verb takes the first ones and some others "
			"(sbctl host VERB --help):",
		.opts = all_opts };
	size_t n = 0;

	for (const struct host_verb *v = host_verbs; v->name && n < 64; v++, n++) {
		cmds[n] = (struct sb_cmd){ .name = v->name, .args = v->args, .help = v->help };
		list[n] = &cmds[n];
	}
	sb_opt_print_usage(stdout, "sbctl host", "Talk to a sandbox host (sbhostd).", list);
	(void)fputc('\n', stdout);
	sb_opt_print_help(stdout, "sbctl host", &options);
}

json_t *
host_session_request(const struct host_args *a)
{
	json_t *o = json_object();

	(void)json_object_set_new(o, "SessionID", json_string(a->v[0]));
	return o;
}

int
host_put_pairs(json_t *o, const char *key, const struct sb_opt_list *l, struct sb_error *err)
{
	json_t *map;

	if (l->n == 0)
		return 0;
	map = json_object();
	(void)json_object_set_new(o, key, map);
	for (size_t i = 0; i < l->n; i++) {
		const char *eq = strchr(l->v[i], '=');
		sb_autofree char *name =
			eq ? strndup(l->v[i], (size_t)(eq - l->v[i])) : strdup(l->v[i]);

		if (!name || !name[0] ||
			json_object_set_new(map, name, json_string(eq ? eq + 1 : "")) < 0)
			return sb_fail(err, SB_E_USAGE, "\"%s\": must be KEY=VALUE in UTF-8",
				l->v[i]);
	}
	return 0;
}

/* The token file goes to `token`, which must live as long as `o` is used. */
static int
how_to_connect(const struct host_args *a, struct sb_buf *token, struct sb_rpc_client_opts *o,
	struct sb_error *err)
{
	const char *env = getenv("SANDBOX_HOST");

	o->address = a->host ? a->host : env && env[0] ? env : DEFAULT_HOST;
	o->ca_file = a->ca_file;
	o->token = getenv("SANDBOX_AUTH_TOKEN");
	if (a->token_file) {
		int r = sb_file_read(AT_FDCWD, a->token_file, TOKEN_MAX, token, err);

		if (r < 0)
			return r;
		token->data[strcspn((const char *)token->data, "\r\n")] = '\0';
		o->token = (const char *)token->data;
	}
	if (o->token && !o->token[0])
		o->token = NULL;
	return 0;
}

static int
call_unary(struct host_run *r, struct sb_error *err)
{
	const struct host_verb *v = r->verb;
	json_t *in = v->build(&r->args, err), *out;
	sb_autofree char *request = in ? json_dumps(in, JSON_COMPACT) : NULL;
	sb_autofree char *answer = NULL;
	size_t len = 0;
	int code;

	json_decref(in);
	if (!request)
		return err->code < 0 ? err->code :
				       sb_fail(err, SB_E_USAGE, "arguments must be UTF-8");
	code = sb_rpc_client_call(r->client, v->method, request, &r->wait, &answer, &len, err);
	if (code < 0)
		return code;
	if (r->args.json) {
		(void)printf("%s\n", answer);
		return 0;
	}
	out = json_loadb(answer, len, 0, NULL);
	if (!out)
		return sb_fail(err, SB_E_PROTO, "the host's answer is not JSON");
	if (v->show)
		v->show(out);
	json_decref(out);
	return 0;
}

/* For Ctrl-C: asking is async-signal-safe. */
static struct sb_cancel *interrupt;

static void
on_interrupt(int sig)
{
	(void)sig;
	sb_cancel_request(interrupt);
}

static void
catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_interrupt,
		.sa_flags = SA_RESTART | (int)SA_RESETHAND };

	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
}

static int
run_verb(struct host_run *r)
{
	sb_auto(sb_buf) struct sb_buf token = { 0 };
	struct sb_error err = { 0 };
	int code = 0;

	r->how = (struct sb_rpc_client_opts)SB_RPC_CLIENT_OPTS_INIT;
	interrupt = sb_cancel_new(&err);
	if (interrupt) {
		catch_signals();
		r->wait = (struct sb_rpc_wait){ interrupt, sb_deadline_in(r->args.timeout) };
		if (how_to_connect(&r->args, &token, &r->how, &err) == 0)
			r->client = sb_rpc_client_new(&r->how, &err);
	}
	if (r->client)
		code = r->verb->run ? r->verb->run(r, &err) : call_unary(r, &err);
	else
		code = err.code;
	sb_rpc_client_free(r->client);
	if (token.len > 0)
		explicit_bzero(token.data, token.len);
	if (code < 0)
		return sbctl_complain(&err);
	return fflush(stdout) == 0 ? r->status : 1;
}

static int
parse_verb(struct host_run *r, int argc, char **argv, struct sb_error *err)
{
	struct sb_opt opts[OPTS_MAX];
	struct sb_cmd cmd = as_command(r->verb, opts);
	char **rest = NULL;
	int n = 0, code;

	/* What follows the session of exec and launch is the command's own. */
	code = sb_opt_parse(opts, argc, argv, cmd.min_args == 2 && cmd.max_args < 0, &r->args,
		&rest, &n, err);
	if (code < 0)
		return code;
	if (r->args.help) {
		sb_opt_print_help(stdout, "sbctl host", &cmd);
		return 0;
	}
	if (n < cmd.min_args || (cmd.max_args >= 0 && n > cmd.max_args))
		return sb_fail(err, SB_E_USAGE, "usage: sbctl host %s %s", cmd.name, cmd.args);
	r->args.v = (const char **)rest;
	r->args.n = n;
	return 0;
}

/* Finds the verb; the common options may stand before it. */
static int
find_verb(struct host_run *r, int argc, char **argv, char ***rest, int *n, struct sb_error *err)
{
	struct sb_opt common[COMMON + 1] = { 0 };
	int code;

	memcpy(common, all_opts, COMMON * sizeof common[0]);
	code = sb_opt_parse(common, argc, argv, true, &r->args, rest, n, err);
	if (code < 0 || r->args.help || *n == 0)
		return code;
	for (r->verb = host_verbs; r->verb->name; r->verb++)
		if (strcmp(r->verb->name, (*rest)[0]) == 0)
			return 0;
	return sb_fail(err, SB_E_USAGE, "there is no verb \"%s\": see sbctl host --help",
		(*rest)[0]);
}

static int
run_host(void *values, int argc, char **argv)
{
	struct host_run r = { 0 };
	struct sb_error err = { 0 };
	char **rest = NULL;
	int n = 0, code;

	(void)values;
	code = find_verb(&r, argc, argv, &rest, &n, &err);
	if (code == 0 && !r.verb) {
		print_all();
		return r.args.help ? 0 : 2;
	}
	if (code == 0)
		code = parse_verb(&r, n, rest, &err);
	if (code < 0)
		code = sbctl_complain(&err);
	else if (!r.args.help)
		code = run_verb(&r);
	sb_opt_list_free(&r.args.labels);
	sb_opt_list_free(&r.args.states);
	sb_opt_list_free(&r.args.env);
	sb_opt_list_free(&r.args.kinds);
	return code;
}

const struct sb_cmd sbctl_host = {
	.name = "host",
	.args = "VERB [ARG]...",
	.help = "sessions, snapshots, tools and processes of a sandbox host",
	.run = run_host,
};
