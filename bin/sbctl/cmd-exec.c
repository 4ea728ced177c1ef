/* SPDX-License-Identifier: MIT */
/* sbctl exec: a command in a sandbox that is there. */
#include "config.h"

#include <bin/sbctl/options.h>

static int
exec_verb(struct ctl *ctl, struct sb_error *err)
{
	return ctl_work_in(ctl, ctl->a.v[0], ctl_work_command, ctl->a.v + 1, err);
}

static const struct sb_opt options[] = {
	OPTIONS_ENV,
	OPTIONS_NO_TTY,
	OPTIONS_PROGRESS,
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_exec = {
	.cmd = {
		.name = "exec",
		.args = "ID CMD [ARG]...",
		.help = "run a command in an existing sandbox",
		.opts = options,
		.min_args = 2,
		.max_args = -1,
	},
	.run = exec_verb,
};
