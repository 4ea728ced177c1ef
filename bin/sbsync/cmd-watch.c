/* SPDX-License-Identifier: MIT */
/* sbsync watch: both ways, whenever something changes. */
#include "config.h"

#include <stdio.h>

#include <bin/sbsync/options.h>

struct watching {
	const struct sync_args *a;
	bool conflicts;
	size_t errors; /* in the sync before */
};

/*
 * Prints a line when a sync did something; none when it did nothing, and none again for files that
 * still cannot be synced.
 */
static void
on_sync(const struct sb_session *s, int code, const struct sb_sync_result *res,
	const struct sb_error *err, void *arg)
{
	struct watching *w = arg;
	struct sync_args quiet = *w->a;
	bool news = res->errors.n != w->errors;

	(void)s;
	if (code < 0)
		return;
	w->errors = res->errors.n;
	if (!news && !res->files_synced && !res->files_deleted && !res->files_moved &&
		!res->conflicts.n)
		return;
	w->conflicts = w->conflicts || res->conflicts.n;
	(void)report(&quiet, code, err, res);
	(void)fflush(stdout);
}

static int
watch_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct watching w = { .a = a };
	struct sb_session_watch how = SB_SESSION_WATCH_INIT;
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	int r = sync_args_apply(a, &o);

	if (r == 0 && a->gitignore) {
		complain("--gitignore counts at the start of a session; sbsync ignore add PATTERN "
			 "changes the rules of this one");
		r = EXIT_USAGE;
	}
	if (r)
		return r;
	o.log = stderr_log(a);
	how.every_ms = a->every > 0 ? a->every : how.every_ms;
	how.on_sync = on_sync;
	how.arg = &w;
	r = sb_session_load(o.state_dir, argc ? argv[0] : NULL, NULL, &s, &err);
	if (r == 0 && !a->quiet)
		(void)fprintf(stderr, "sbsync: watching session %s; Ctrl-C ends it\n", s.name);
	if (r == 0)
		r = sb_session_watch(&s, &how, &o, (enum sb_session_conflict)a->conflict, &err);
	if (r < 0)
		complain("%s", err.msg);
	else if (!a->quiet)
		(void)fprintf(stderr, "sbsync: no longer watching; session %s stays open\n",
			s.name);
	sb_session_free(&s);
	sync_opts_free(&o);
	return r < 0 ? exit_code(r) : w.conflicts ? EXIT_CONFLICTS : EXIT_DONE;
}

static const struct sb_opt options[] = {
	OPT_TIME(0, "every", every, "TIME", 0, 0,
		"sync this often even if nothing seems to change (default 60s)"),
	OPTIONS_CONFLICT,
	OPTIONS_SYNC,
	OPT_END,
};

const struct sb_cmd cmd_watch = {
	.name = "watch",
	.args = "[SESSION]",
	.help = "sync both ways whenever something changes, until Ctrl-C",
	.details = "SESSION may be left out inside the local directory.",
	.opts = options,
	.max_args = 1,
	.run = watch_verb,
};
