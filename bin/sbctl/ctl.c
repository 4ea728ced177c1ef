/* SPDX-License-Identifier: MIT */
/* A sandbox verb from its words to its exit status. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bin/sbctl/ctl.h>

int
ctl_status(int code)
{
	switch (code) {
	case SB_E_USAGE: return CTL_USAGE;
	case SB_E_LOCKED: return CTL_LOCKED;
	case SB_E_BRAKE: return CTL_BRAKE;
	default: return CTL_FAILED;
	}
}

int
ctl_complain(const struct sb_error *err)
{
	(void)fprintf(stderr, "sbctl: %s\n", err->msg);
	return err->code == SB_E_USAGE ? CTL_USAGE : CTL_FAILED;
}

static void
say(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	progress_hide();
	(void)fprintf(stderr, "sbctl: %s: %s\n", component, text);
}

/* What takes its time besides syncs, whose steps their callback tells. */
static void
on_event(const struct sb_event *ev, void *arg)
{
	static const char *const phases[][2] = {
		{ "sandbox.prepare.start", "making the sandbox" },
		{ "sandbox.prepare.complete", "starting" },
		{ "sandbox.sync.complete", "looking after the sandbox" },
		{ "sandbox.snapshot.start", "taking a snapshot" },
		{ "sandbox.destroy.start", "removing the sandbox" },
	};

	(void)arg;
	for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
		if (strcmp(ev->kind, phases[i][0]) == 0)
			progress_phase(phases[i][1]);
}

static int
open_all(struct ctl *ctl, struct sb_error *err)
{
	struct sb_keeper_opts k = SB_KEEPER_OPTS_INIT;

	ctl->cancel = sb_cancel_new(err);
	ctl->registry = ctl->cancel ? sb_registry_builtin(NULL, err) : NULL;
	if (!ctl->registry)
		return err->code;
	ctl->call = (struct sb_call)SB_CALL_INIT;
	ctl->call.cancel = ctl->cancel;
	ctl->call.deadline = sb_deadline_in(ctl->a.timeout);
	ctl->call.log = (struct sb_log){ .fn = say,
		.level = ctl->a.verbose > 1 ? SB_LOG_DEBUG :
			ctl->a.verbose      ? SB_LOG_INFO :
					      SB_LOG_WARN };
	if (ctl->a.quiet)
		ctl->call.log.level = SB_LOG_ERROR;
	k.registry = ctl->registry;
	k.log = ctl->call.log;
	k.on_event = on_event;
	ctl->keeper = sb_keeper_new(&k, err);
	return ctl->keeper ? 0 : err->code;
}

static int
parse(struct ctl *ctl, const struct sb_cmd *cmd, int argc, char **argv, struct sb_error *err)
{
	char **rest = NULL;
	int n = 0;
	/* Words behind the operands of run and exec belong to the command. */
	int r = sb_opt_parse(cmd->opts, argc, argv, cmd->max_args < 0, &ctl->a, &rest, &n, err);

	if (r < 0 || ctl->a.help)
		return r;
	if (n < cmd->min_args || (cmd->max_args >= 0 && n > cmd->max_args))
		return sb_fail(err, SB_E_USAGE, "usage: sbctl %s %s", cmd->name, cmd->args);
	/* The parser leaves the options behind the operands; a copy ends with the operands. */
	ctl->a.v = calloc((size_t)n + 1, sizeof *ctl->a.v);
	if (!ctl->a.v)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	for (int i = 0; i < n; i++)
		ctl->a.v[i] = rest[i];
	ctl->a.n = n;
	return 0;
}

static void
show_progress(struct ctl *ctl)
{
	progress_begin((enum progress_how)ctl->a.progress, ctl->a.quiet || ctl->a.json);
	if (progress_is_on())
		ctl->call.progress = progress_note;
}

int
ctl_main(const struct ctl_verb *verb, int argc, char **argv)
{
	struct ctl ctl = { .a = { .max_delete = -1 } };
	struct sb_error err = { 0 };
	int r = parse(&ctl, &verb->cmd, argc, argv, &err);

	if (r == 0 && ctl.a.help) {
		sb_opt_print_help(stdout, "sbctl", &verb->cmd);
	} else if (r == 0) {
		r = open_all(&ctl, &err);
		if (r == 0)
			r = ctl_signals_open(&err) < 0 ? err.code : 0;
		if (r == 0) {
			ctl_signals_cancel(ctl.cancel);
			show_progress(&ctl);
			r = verb->run(&ctl, &err);
			progress_end();
			ctl_signals_cancel(NULL);
		}
	}
	if (r < 0) {
		(void)fprintf(stderr, "sbctl: %s\n", err.msg[0] ? err.msg : sb_code_text(r));
		r = ctl_status(r);
	}
	sb_keeper_free(ctl.keeper);
	sb_registry_free(ctl.registry);
	sb_cancel_free(ctl.cancel);
	free(ctl.a.v);
	sb_opt_list_free(&ctl.a.set);
	sb_opt_list_free(&ctl.a.exclude);
	sb_opt_list_free(&ctl.a.also);
	sb_opt_list_free(&ctl.a.env);
	return fflush(stdout) == 0 ? r : CTL_FAILED;
}
