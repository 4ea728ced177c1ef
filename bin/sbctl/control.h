/* SPDX-License-Identifier: MIT */
#ifndef SBCTL_CONTROL_H
#define SBCTL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include <base/opt.h>
#include <sb/control.h>

/* Values of all options of the verbs of `sbctl control`; each verb takes some. */
struct control_args {
	const char *control, *config, *state_dir;
	int64_t timeout, fence;
	bool json, quiet, help;
	const char *key, *base, *network, *snapshot;
	struct sb_opt_list labels, env, pass, allow, deny;
	uint64_t mem, disk;
	const char *cpus;
	int64_t lifetime, port, ready, signal;
	bool force, deep, wait;
	const char **v; /* operands */
	int n;
};

/* A call under way. */
struct control_run {
	struct control_args args;
	struct sb_control *control;
	struct sb_control_call call;
	double cpus; /* of the option */
};

/* One verb: an exit status, or an error. */
struct control_verb {
	const char *name, *args, *help;
	const char *opts; /* names of its options besides the common ones, comma-separated */
	int min_args, max_args;
	int (*run)(struct control_run *r, struct sb_error *err);
};

/* cmd-control-sandbox.c */
extern const struct control_verb cmd_control_create, cmd_control_ls, cmd_control_show,
	cmd_control_pause, cmd_control_resume, cmd_control_snapshot, cmd_control_rollback,
	cmd_control_fork, cmd_control_destroy, cmd_control_recover, cmd_control_capabilities;
/* cmd-control-process.c */
extern const struct control_verb cmd_control_launch, cmd_control_status, cmd_control_kill;

/* control-options.c: all options; the first CONTROL_OPTIONS_COMMON are every verb's. */
#define CONTROL_OPTIONS_COMMON 8
#define CONTROL_OPTIONS_MAX 32
extern const struct sb_opt control_options[];
/* The verb for the option parser and the help printer. `opts` holds CONTROL_OPTIONS_MAX entries. */
struct sb_cmd control_options_of(const struct control_verb *v, struct sb_opt *opts);

#endif
