/* SPDX-License-Identifier: MIT */
/* sbsync agent: the far side of a sync, started by the other verbs. */
#include "config.h"

#include <unistd.h>

#include <bin/sbsync/options.h>

static int
agent_verb(void *values, int argc, char **argv)
{
	struct sb_error err = { 0 };
	int r;

	(void)values;
	(void)argc;
	(void)argv;
	if (isatty(STDIN_FILENO)) {
		complain("agent speaks the sync protocol on stdin and stdout; it is started by the "
			 "other commands");
		return EXIT_USAGE;
	}
	r = sb_sync_agent(STDIN_FILENO, STDOUT_FILENO, signals_cancel(), &err);
	/* The controller knows already; this line is for when it went away. */
	if (r < 0 && r != SB_E_CLOSED)
		complain("agent: %s", err.msg);
	return exit_code(r);
}

static const struct sb_opt options[] = {
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_agent = {
	.name = "agent",
	.args = "",
	.help = "serve the far side of a sync on stdin and stdout",
	.opts = options,
	.max_args = 0,
	.run = agent_verb,
};
