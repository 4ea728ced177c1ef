/* SPDX-License-Identifier: MIT */
/* sbsync-agent: the agent of sbsync as a small program that can be sent to other machines. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sbsync/sync.h>
#include <sbsync/version.h>
#include <tool/launch.h>
#include <tool/serve.h>

static int
tell(int r, const struct sb_error *err)
{
	if (r < 0 && r != SB_E_CLOSED)
		(void)fprintf(stderr, "sbsync-agent: %s\n", err->msg);
	return r < 0 ? 1 : 0;
}

/*
 * Without an argument, the same as `sbsync agent`. A provider starts "tools" and "launch" to work
 * in a sandbox on this machine.
 */
int
main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "agent";
	struct sb_error err = { 0 };

	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		(void)printf("sbsync-agent %s\n", sb_sync_version());
		return 0;
	}
	if (argc > 2 || isatty(STDIN_FILENO) ||
		(strcmp(verb, "agent") != 0 && strcmp(verb, "tools") != 0 &&
			strcmp(verb, "launch") != 0)) {
		(void)fprintf(stderr,
			"sbsync-agent: speaks the sync protocol on stdin and stdout; started by "
			"sbsync\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	if (strcmp(verb, "launch") == 0)
		return sb_launch_serve();
	if (strcmp(verb, "tools") == 0)
		return tell(sb_serve_run(STDIN_FILENO, STDOUT_FILENO, &err), &err);
	return tell(sb_sync_agent(STDIN_FILENO, STDOUT_FILENO, NULL, &err), &err);
}
