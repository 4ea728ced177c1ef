/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <unistd.h>

#include <bin/sbsync/sbsync.h>

const struct sb_opt agent_options[] = {
	{ 'h', "help", SB_OPT_FLAG, offsetof(struct sync_args, help), NULL, "show this help", NULL,
		0, 0 },
	{ 0, NULL, SB_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0 },
};

int
run_agent(void *values, int argc, char **argv)
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
	/* The controller was told; this line is for one that went away. */
	if (r < 0 && r != SB_E_CLOSED)
		complain("agent: %s", err.msg);
	return exit_code(r);
}
