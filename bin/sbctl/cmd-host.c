/* SPDX-License-Identifier: MIT */
/* sbctl host: the table of its verbs and their dispatch. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/sbctl/ctl.h>
#include <bin/sbctl/host.h>

/* In the order of --help. */
const struct host_verb *const host_verbs[] = {
	&cmd_host_health,
	&cmd_host_capabilities,
	&cmd_host_bases,
	&cmd_host_create,
	&cmd_host_ls,
	&cmd_host_get,
	&cmd_host_label,
	&cmd_host_network,
	&cmd_host_pause,
	&cmd_host_resume,
	&cmd_host_deep_pause,
	&cmd_host_deep_resume,
	&cmd_host_destroy,
	&cmd_host_fork,
	&cmd_host_exec,
	&cmd_host_attach,
	&cmd_host_tools,
	&cmd_host_tool,
	&cmd_host_turn,
	&cmd_host_snapshot,
	&cmd_host_snapshots,
	&cmd_host_timeline,
	&cmd_host_rollback,
	&cmd_host_diff,
	&cmd_host_rm_snapshot,
	&cmd_host_hold,
	&cmd_host_release,
	&cmd_host_launch,
	&cmd_host_kill,
	&cmd_host_status,
	&cmd_host_ps,
	&cmd_host_logs,
	&cmd_host_events,
	&cmd_host_token,
	&cmd_host_ssh_access,
	NULL,
};
#define VERBS (sizeof host_verbs / sizeof host_verbs[0] - 1)

static void
print_all(void)
{
	struct sb_cmd cmds[VERBS];
	const struct sb_cmd *list[VERBS + 1] = { NULL };
	static const struct sb_cmd options = { .name = "VERB",
		.args = "[ARG]...",
		.help = "Options, of which each verb takes the first ones and some others "
			"(sbctl host VERB --help):",
		.opts = host_options };

	for (size_t i = 0; i < VERBS; i++) {
		cmds[i] = (struct sb_cmd){ .name = host_verbs[i]->name,
			.args = host_verbs[i]->args,
			.help = host_verbs[i]->help };
		list[i] = &cmds[i];
	}
	sb_opt_print_usage(stdout, "sbctl host", "Talk to a sandbox host (sbhostd).", list);
	(void)fputc('\n', stdout);
	sb_opt_print_help(stdout, "sbctl host", &options);
}

static int
parse_verb(struct host_run *r, int argc, char **argv, struct sb_error *err)
{
	struct sb_opt opts[HOST_OPTIONS_MAX];
	struct sb_cmd cmd = host_options_of(r->verb, opts);
	char **rest = NULL;
	int n = 0, code;

	/* Words behind the session of exec and launch belong to the command. */
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
	struct sb_opt common[HOST_OPTIONS_COMMON + 1] = { 0 };
	int code;

	memcpy(common, host_options, HOST_OPTIONS_COMMON * sizeof common[0]);
	code = sb_opt_parse(common, argc, argv, true, &r->args, rest, n, err);
	if (code < 0 || r->args.help || *n == 0)
		return code;
	for (size_t i = 0; i < VERBS; i++)
		if (strcmp(host_verbs[i]->name, (*rest)[0]) == 0) {
			r->verb = host_verbs[i];
			return 0;
		}
	return sb_fail(err, SB_E_USAGE, "there is no verb \"%s\": see sbctl host --help",
		(*rest)[0]);
}

static int
host_main(void *values, int argc, char **argv)
{
	struct host_run r = { 0 };
	struct sb_error err = { 0 };
	char **rest = NULL;
	int n = 0, code;

	(void)values;
	code = find_verb(&r, argc, argv, &rest, &n, &err);
	if (code == 0 && !r.verb) {
		print_all();
		return r.args.help ? CTL_DONE : CTL_USAGE;
	}
	if (code == 0)
		code = parse_verb(&r, n, rest, &err);
	if (code < 0)
		code = ctl_complain(&err);
	else if (!r.args.help)
		code = host_call_verb(&r);
	sb_opt_lists_free(host_options, &r.args);
	return code;
}

const struct ctl_verb cmd_host = {
	.cmd = {
		.name = "host",
		.args = "VERB [ARG]...",
		.help = "work with sessions, snapshots, tools and processes of a sandbox host",
		.run = host_main,
	},
};
