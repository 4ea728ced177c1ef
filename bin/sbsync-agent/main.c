/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sbsync/sync.h>
#include <sbsync/version.h>

/* The same as `sbsync agent`, without the rest of sbsync: small enough to be sent along. */
int
main(int argc, char **argv)
{
	struct sb_error err = { 0 };
	int r;

	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		(void)printf("sbsync-agent %s\n", sb_sync_version());
		return 0;
	}
	if (argc > 2 || (argc == 2 && strcmp(argv[1], "agent") != 0) || isatty(STDIN_FILENO)) {
		(void)fprintf(stderr, "sbsync-agent: speaks the sync protocol on stdin and stdout; started by sbsync\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	r = sb_sync_agent(STDIN_FILENO, STDOUT_FILENO, NULL, &err);
	if (r < 0 && r != SB_E_CLOSED)
		(void)fprintf(stderr, "sbsync-agent: %s\n", err.msg);
	return r < 0 ? 1 : 0;
}
