/* SPDX-License-Identifier: MIT */
/* The verbs of `sbctl control` about processes: tiny ones, so one file holds them all. */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/strlist.h>
#include <bin/sbctl/control.h>
#include <bin/sbctl/ctl.h>

static void
show(const struct control_run *r, const struct sb_control_process *p)
{
	json_t *o;

	if (r->args.json) {
		o = json_pack("{s:s,s:s,s:s,s:o}", "id", p->id, "status",
			sb_control_status_name(p->status), "address", p->address, "exit_code",
			p->has_exit ? json_integer(p->exit_code) : json_null());
		ctl_print_json(o, stdout);
		json_decref(o);
	} else if (!r->args.quiet) {
		(void)printf("%s %s", p->id, sb_control_status_name(p->status));
		if (p->has_exit)
			(void)printf(" %d", p->exit_code);
		(void)printf("%s%s\n", p->address[0] ? " " : "", p->address);
	}
}

/* Secrets come from our environment: the command line of this process is no place for them. */
static int
environment(const struct control_args *a, struct sb_strlist *env, struct sb_error *err)
{
	for (size_t i = 0; i < a->env.n; i++)
		sb_strlist_put(env, a->env.v[i]);
	for (size_t i = 0; i < a->pass.n; i++) {
		const char *value = getenv(a->pass.v[i]);

		if (!value)
			return sb_fail(err, SB_E_USAGE, "--pass-env %s: it is not set here",
				a->pass.v[i]);
		sb_strlist_putf(env, "%s=%s", a->pass.v[i], value);
	}
	return sb_strlist_check(env, err);
}

/* Its end may take any time: --timeout is the only limit. */
static int
wait_for_end(struct control_run *r, struct sb_control_process *p, struct sb_error *err)
{
	int code = 0;

	for (int ms = 20; code == 0 && p->status != SB_CONTROL_EXITED;
		ms = ms < 500 ? 2 * ms : ms) {
		struct pollfd wake = { .fd = sb_cancel_fd(r->call.cancel), .events = POLLIN };

		(void)poll(&wake, 1, ms);
		code = sb_control_status(r->control, r->args.v[0], p->id, &r->call, p, err);
	}
	if (code < 0)
		return code;
	return p->has_exit ? p->exit_code :
			     sb_fail(err, SB_E_STATE, "process %s: its exit code is lost", p->id);
}

static int
launch(struct control_run *r, struct sb_error *err)
{
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	sb_auto(sb_strlist) struct sb_strlist env = { 0 }, args = { 0 };
	struct sb_control_process p = { 0 };
	int code = environment(&r->args, &env, err);

	for (int i = 2; i < r->args.n; i++)
		sb_strlist_add(&args, r->args.v[i]);
	if (code == 0)
		code = sb_strlist_check(&args, err);
	if (code < 0)
		return code;
	o.sandbox = r->args.v[0];
	o.binary = r->args.v[1];
	o.args = sb_strlist_borrow(&args);
	o.env = sb_strlist_borrow(&env);
	o.expose_port = (int)r->args.port;
	o.ready_ms = r->args.ready;
	o.cpus = r->cpus;
	o.mem_mb = (r->args.mem + (1 << 20) - 1) >> 20;
	code = sb_control_launch(r->control, &o, &r->call, &p, err);
	for (size_t i = 0; i < env.n; i++)
		explicit_bzero(env.v[i], strlen(env.v[i]));
	if (code == 0)
		show(r, &p);
	return code == 0 && r->args.wait ? wait_for_end(r, &p, err) : code;
}

const struct control_verb cmd_control_launch = {
	.name = "launch",
	.args = "SANDBOX BINARY [ARG]...",
	.help = "start a process that lives on, and print its id",
	.opts = "env,pass-env,port,ready,wait,cpus,mem",
	.min_args = 2,
	.max_args = -1,
	.run = launch,
};

static int
status(struct control_run *r, struct sb_error *err)
{
	struct sb_control_process p = { 0 };
	int code = sb_control_status(r->control, r->args.v[0], r->args.v[1], &r->call, &p, err);

	if (code == 0)
		show(r, &p);
	return code == 0 && r->args.wait ? wait_for_end(r, &p, err) : code;
}

const struct control_verb cmd_control_status = {
	.name = "status",
	.args = "SANDBOX PROCESS",
	.help = "print whether a process runs, and its exit code",
	.opts = "wait",
	.min_args = 2,
	.max_args = 2,
	.run = status,
};

static int
kill_one(struct control_run *r, struct sb_error *err)
{
	return sb_control_kill(r->control, r->args.v[0], r->args.v[1], (int)r->args.signal,
		&r->call, err);
}

const struct control_verb cmd_control_kill = {
	.name = "kill",
	.args = "SANDBOX PROCESS",
	.help = "send a signal to a process",
	.opts = "signal",
	.min_args = 2,
	.max_args = 2,
	.run = kill_one,
};
