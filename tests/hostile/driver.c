/* SPDX-License-Identifier: MIT */
/*
 * Runs one sync with a chosen program as the agent: driver mirror SRC DST AGENT..., driver
 * start|turn|stop LOCAL REMOTE AGENT... (the session is called "h"). Prints the error as a command
 * would; exit 0 done, 1 failed, 3 conflicts. HOSTILE_MS bounds the whole sync, HOSTILE_STALL_MS the
 * silence (slow programs need more). driver forge NAME SIZE ... writes the id of a tree of such
 * files, which are nowhere, and its manifest, for an agent that wants to claim it.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sbsync/session.h>
#include <sbsync/sync.h>
#include <sync/tree/manifest.h>

static int
session(const char *verb, char **argv, const struct sb_sync_opts *o, struct sb_sync_result *res,
	struct sb_error *err)
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
			r = sb_session_sync(&s,
				strcmp(verb, "turn") == 0 ? SB_REASON_TURN : SB_REASON_STOP, o,
				SB_SESSION_KEEP_BOTH, res, err);
	}
	sb_session_free(&s);
	return r;
}

static int
forge(int argc, char **argv)
{
	struct sb_entry e = { .type = SB_ENTRY_FILE, .mode = 0644 };
	struct sb_manifest *m = sb_manifest_new(NULL);
	struct sb_buf b;

	sb_buf_init(&b, 1 << 20);
	memset(e.digest.b, 'd', sizeof e.digest.b);
	for (int i = 2; m && i + 1 < argc; i += 2) {
		e.size = strtoull(argv[i + 1], NULL, 10);
		if (!sb_manifest_put(m, argv[i], &e, NULL, NULL))
			return 1;
	}
	if (!m || sb_manifest_finish(m, NULL) < 0 || sb_manifest_encode(m, false, &b, NULL) < 0)
		return 1;
	fwrite(m->id.b, 1, sizeof m->id.b, stdout);
	fwrite(b.data, 1, b.len, stdout);
	sb_buf_free(&b);
	sb_manifest_free(m);
	return fflush(stdout) != 0;
}

int
main(int argc, char **argv)
{
	const char *ms = getenv("HOSTILE_MS"), *stall = getenv("HOSTILE_STALL_MS");
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };
	bool conflicts;
	int r;

	if (argc >= 4 && strcmp(argv[1], "forge") == 0)
		return forge(argc, argv);
	if (argc < 5)
		return 2;
	(void)signal(SIGPIPE, SIG_IGN);
	o.timeout_ms = ms ? strtol(ms, NULL, 10) : 0;
	o.agent = (const char *const *)argv + 4;
	o.stall_ms = stall ? (int)strtol(stall, NULL, 10) : 3000;
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
