/* SPDX-License-Identifier: MIT */
/* sbctl control: the table of its verbs, and a verb from its words to its exit status. */
#include "config.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bin/sbctl/control.h>
#include <bin/sbctl/ctl.h>

/* In the order of --help. */
static const struct control_verb *const verbs[] = {
	&cmd_control_capabilities,
	&cmd_control_create,
	&cmd_control_ls,
	&cmd_control_show,
	&cmd_control_launch,
	&cmd_control_status,
	&cmd_control_kill,
	&cmd_control_pause,
	&cmd_control_resume,
	&cmd_control_snapshot,
	&cmd_control_rollback,
	&cmd_control_fork,
	&cmd_control_destroy,
	&cmd_control_recover,
};
#define VERBS (sizeof verbs / sizeof verbs[0])

static void
print_all(void)
{
	struct sb_cmd cmds[VERBS];
	const struct sb_cmd *list[VERBS + 1] = { NULL };
	static const struct sb_cmd options = { .name = "VERB",
		.args = "[ARG]...",
		.help = "Options, of which each verb takes the first ones and some others "
			"(sbctl control VERB --help):",
		.opts = control_options };

	for (size_t i = 0; i < VERBS; i++) {
		cmds[i] = (struct sb_cmd){ .name = verbs[i]->name,
			.args = verbs[i]->args,
			.help = verbs[i]->help };
		list[i] = &cmds[i];
	}
	sb_opt_print_usage(stdout, "sbctl control", "Make sandboxes anywhere, by one interface.",
		list);
	(void)fputc('\n', stdout);
	sb_opt_print_help(stdout, "sbctl control", &options);
}

static int
parse_verb(struct control_run *r, const struct control_verb *v, int argc, char **argv,
	struct sb_error *err)
{
	struct sb_opt opts[CONTROL_OPTIONS_MAX];
	struct sb_cmd cmd = control_options_of(v, opts);
	char **rest = NULL, *end = NULL;
	int n = 0, code;

	/* Words behind the sandbox of launch belong to the command. */
	code = sb_opt_parse(opts, argc, argv, cmd.max_args < 0, &r->args, &rest, &n, err);
	if (code < 0)
		return code;
	if (r->args.help) {
		sb_opt_print_help(stdout, "sbctl control", &cmd);
		return 0;
	}
	if (n < cmd.min_args || (cmd.max_args >= 0 && n > cmd.max_args))
		return sb_fail(err, SB_E_USAGE, "usage: sbctl control %s %s", cmd.name, cmd.args);
	if (r->args.cpus) {
		r->cpus = strtod(r->args.cpus, &end);
		if (end == r->args.cpus || *end || !isfinite(r->cpus) || r->cpus <= 0)
			return sb_fail(err, SB_E_USAGE, "--cpus %s: write a number, 0.5 say",
				r->args.cpus);
	}
	r->args.v = (const char **)rest;
	r->args.n = n;
	return 0;
}

static const struct control_verb *
find_verb(struct control_run *r, int argc, char **argv, char ***rest, int *n, struct sb_error *err)
{
	struct sb_opt common[CONTROL_OPTIONS_COMMON + 1] = { 0 };

	memcpy(common, control_options, CONTROL_OPTIONS_COMMON * sizeof common[0]);
	if (sb_opt_parse(common, argc, argv, true, &r->args, rest, n, err) < 0 || r->args.help ||
		*n == 0)
		return NULL;
	for (size_t i = 0; i < VERBS; i++)
		if (strcmp(verbs[i]->name, (*rest)[0]) == 0)
			return verbs[i];
	(void)sb_fail(err, SB_E_USAGE, "there is no verb \"%s\": see sbctl control --help",
		(*rest)[0]);
	return NULL;
}

static void
say(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	(void)fprintf(stderr, "sbctl: %s: %s\n", component, text);
}

/* Mistakes in the file, all of them. */
static void
print_mistake(const char *file, size_t line, const char *text, void *arg)
{
	bool *any = arg;

	*any = true;
	(void)fprintf(stderr, "%s:%zu: %s\n", file, line, text);
}

static int
open_control(struct control_run *r, struct sb_error *err)
{
	struct sb_profiles_opts o = SB_PROFILES_OPTS_INIT;
	struct sb_control_open_opts c = SB_CONTROL_OPEN_OPTS_INIT;
	sb_auto(sb_profiles) struct sb_profiles *ps = NULL;
	const struct sb_profile_control *p;
	bool mistakes = false;

	o.user_file = r->args.config;
	o.on_mistake = print_mistake;
	o.mistake_arg = &mistakes;
	o.control_option = sb_control_option_check;
	ps = sb_profiles_load(&o, err);
	if (!ps)
		return mistakes ? sb_fail(err, SB_E_INVAL, "the file has mistakes") : err->code;
	p = sb_profiles_control(ps, r->args.control, err);
	if (!p)
		return err->code;
	c.name = p->name;
	c.kind = p->kind;
	c.options = sb_strlist_borrow(&p->options);
	c.state_dir = r->args.state_dir;
	c.log = (struct sb_log){ .fn = say, .level = r->args.quiet ? SB_LOG_ERROR : SB_LOG_WARN };
	r->control = sb_control_open(&c, err);
	return r->control ? 0 : err->code;
}

/* For Ctrl-C: asking is async-signal-safe. */
static struct sb_cancel *interrupt;

static void
on_interrupt(int sig)
{
	(void)sig;
	sb_cancel_request(interrupt);
}

static int
run_verb(struct control_run *r, const struct control_verb *v, struct sb_error *err)
{
	struct sigaction sa = { .sa_handler = on_interrupt,
		.sa_flags = SA_RESTART | (int)SA_RESETHAND };
	int code;

	interrupt = sb_cancel_new(err);
	if (!interrupt)
		return err->code;
	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	code = open_control(r, err);
	if (code < 0)
		return code;
	r->call = (struct sb_control_call)SB_CONTROL_CALL_INIT;
	r->call.cancel = interrupt;
	r->call.fence = (uint64_t)r->args.fence;
	if (r->args.timeout)
		r->call.deadline = sb_deadline_in(r->args.timeout);
	return v->run(r, err);
}

static int
control_main(void *values, int argc, char **argv)
{
	struct control_run r = { 0 };
	struct sb_error err = { 0 };
	const struct control_verb *v;
	char **rest = NULL;
	int n = 0, code;

	(void)values;
	v = find_verb(&r, argc, argv, &rest, &n, &err);
	if (!v && err.code == 0) {
		print_all();
		return r.args.help ? CTL_DONE : CTL_USAGE;
	}
	code = v ? parse_verb(&r, v, n, rest, &err) : err.code;
	if (code == 0 && !r.args.help)
		code = run_verb(&r, v, &err);
	if (code < 0)
		code = ctl_complain(&err);
	sb_control_close(r.control);
	sb_opt_lists_free(control_options, &r.args);
	return fflush(stdout) == 0 ? code : CTL_FAILED;
}

const struct ctl_verb cmd_control = {
	.cmd = {
		.name = "control",
		.args = "VERB [ARG]...",
		.help = "make sandboxes anywhere, and run processes in them",
		.run = control_main,
	},
};
