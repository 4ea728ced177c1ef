/* SPDX-License-Identifier: MIT */
/*
 * Runs one sync with a chosen program as the agent: driver mirror SRC DST AGENT..., driver start|turn|stop LOCAL REMOTE
 * AGENT... (the session is called "h"). Prints the error as a command would; exit 0 done, 1 failed, 3 conflicts.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <sbsync/session.h>
#include <sbsync/sync.h>

static int
session(const char *verb, char **argv, const struct sb_sync_opts *o, struct sb_sync_result *res, struct sb_error *err)
{
	struct sb_session s = { 0 };
	int r;

	if (strcmp(verb, "start") == 0) {
		struct sb_session_start how = SB_SESSION_START_INIT;

		how.name = "h";
		r = sb_session_start(argv[2], argv[3], &how, o, SB_SESSION_KEEP_BOTH, &s, res, err);
	} else {
		r = sb_session_load(NULL, "h", NULL, &s, err);
		if (r == 0)
			r = sb_session_sync(&s, strcmp(verb, "turn") == 0 ? SB_REASON_TURN : SB_REASON_STOP, o, SB_SESSION_KEEP_BOTH, res, err);
	}
	sb_session_free(&s);
	return r;
}

int
main(int argc, char **argv)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };
	bool conflicts;
	int r;

	if (argc < 5)
		return 2;
	o.agent = (const char *const *)argv + 4;
	o.stall_ms = 3000;
	o.always_delta = true;
	if (strcmp(argv[1], "mirror") == 0)
		r = sb_sync_mirror(argv[2], argv[3], &o, &res, &err);
	else
		r = session(argv[1], argv, &o, &res, &err);
	conflicts = res.conflicts.n > 0 || res.errors.n > 0;
	sb_sync_result_free(&res);
	if (r < 0)
		fprintf(stderr, "driver: %s\n", err.msg);
	return r < 0 ? 1 : conflicts ? 3 : 0;
}
