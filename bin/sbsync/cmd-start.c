/* SPDX-License-Identifier: MIT */
/* sbsync start: opens a session. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include <bin/common/progress.h>
#include <bin/sbsync/options.h>

static int
start_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session_start how = SB_SESSION_START_INIT;
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { 0 };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	int r = sync_args_apply(a, &o);

	(void)argc;
	if (r == 0)
		r = guard_start(a, argv[0], argv[1]);
	if (r)
		return r;
	how.name = a->name;
	how.also = a->also.v;
	how.conflict_rules = a->conflict_rules.v;
	how.labels = a->labels.v;
	how.owner_pid = a->owner < 0 ? 0 : a->owner ? a->owner : SB_SESSION_NO_OWNER;
	o.log = stderr_log(a);
	sync_args_progress(a, &o);
	r = sb_session_start(argv[0], argv[1], &how, &o, (enum sb_session_conflict)a->conflict, &s,
		&res, &err);
	progress_end();
	if (r == 0 && !a->json && !a->quiet)
		(void)printf("session %s: %s and %s\n", s.name, s.pairs[0].local,
			s.pairs[0].remote);
	r = report(a, r, &err, &res);
	sb_sync_result_free(&res);
	sb_session_free(&s);
	return r;
}

static const struct sb_opt options[] = {
	OPT_TEXT(0, "name", name, "NAME", "name of the session (default: the directory's)"),
	OPT_LIST(0, "also", also, "LOCAL:PATH",
		"a further pair of directories, same host; repeatable"),
	OPT_INT(0, "owner", owner, "PID", 0, INT64_MAX,
		"recovery syncs back once this process is gone (default: the caller; 0: none)"),
	OPT_LIST(0, "conflict-rule", conflict_rules, "PATTERN=HOW",
		"--conflict for the paths that match, for the whole session; repeatable"),
	OPT_LIST(0, "label", labels, "KEY=VALUE", "a label for ls --label; repeatable"),
	OPT_FLAG(0, "yes", yes, "do not ask about directories that are hardly meant"),
	OPTIONS_CONFLICT,
	OPTIONS_SYNC,
	OPT_END,
};

const struct sb_cmd cmd_start = {
	.name = "start",
	.args = "LOCAL REMOTE",
	.help = "open a session: sync LOCAL to the sandbox at REMOTE",
	.details = "REMOTE is a local path, [user@]host:path or ssh://[user@]host[:port]/path.\n"
		   "--exclude, --exclude-from and --gitignore hold for the whole session: sbsync\n"
		   "ignore shows and changes them. .sbsyncignore files count as they are.",
	.opts = options,
	.min_args = 2,
	.max_args = 2,
	.run = start_verb,
};
