/* SPDX-License-Identifier: MIT */
/* sbsync pause and resume: a session rests and keeps what both sides agreed on. */
#include "config.h"

#include <stdio.h>

#include <bin/sbsync/options.h>

static int
set(const struct sync_args *a, int argc, char **argv, bool pause)
{
	struct sb_session_edit e = SB_SESSION_EDIT_INIT;
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	int r = load_session(argc, argv, &s);

	if (r)
		return r;
	r = pause ? end_watcher(&s, a->quiet) : 0;
	if (r == 0) {
		e.pause = pause;
		r = sb_session_edit(&s, NULL, &e, &err);
		if (r < 0)
			complain("%s", err.msg);
		else if (!a->quiet)
			(void)printf("session %s %s; next: sbsync %s %s\n", s.name,
				pause ? "is paused" : "goes on", pause ? "resume" : "sync", s.name);
		r = r < 0 ? exit_code(r) : EXIT_DONE;
	}
	sb_session_free(&s);
	return r;
}

static int
pause_verb(void *values, int argc, char **argv)
{
	return set(values, argc, argv, true);
}

static int
resume_verb(void *values, int argc, char **argv)
{
	return set(values, argc, argv, false);
}

static const struct sb_opt options[] = {
	OPTIONS_QUIET_VERBOSE,
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_pause = {
	.name = "pause",
	.args = "[SESSION]",
	.help = "let a session rest: nothing syncs it until resume",
	.details =
		"Ends its watch. What both sides agreed on stays, so that nothing is sent again\n"
		"and nothing is lost; recover leaves it alone, stop brings its work back.",
	.opts = options,
	.max_args = 1,
	.run = pause_verb,
};

const struct sb_cmd cmd_resume = {
	.name = "resume",
	.args = "[SESSION]",
	.help = "let a paused session go on",
	.opts = options,
	.max_args = 1,
	.run = resume_verb,
};
