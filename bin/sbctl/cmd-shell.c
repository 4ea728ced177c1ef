/* SPDX-License-Identifier: MIT */
/* sbctl shell: a shell in a sandbox that is there. */
#include "config.h"

#include <stdlib.h>

#include <bin/sbctl/options.h>

static int
shell_verb(struct ctl *ctl, struct sb_error *err)
{
	static const char *shell[] = { "sh", "-c", "exec \"${SHELL:-/bin/sh}\"", NULL };
	sb_autofree char *id = ctl_pick(ctl, ctl->a.n ? ctl->a.v[0] : NULL, err);

	return id ? ctl_work_in(ctl, id, ctl_work_command, shell, err) : err->code;
}

static const struct sb_opt options[] = {
	OPTIONS_ENV,
	OPTIONS_NO_TTY,
	OPTIONS_PROGRESS,
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_shell = {
	.cmd = {
		.name = "shell",
		.args = "[ID]",
		.help = "open a shell in an existing sandbox",
		.opts = options,
		.max_args = 1,
	},
	.run = shell_verb,
};
