/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bin/sbsync/sbsync.h>
#include <sbsync/session.h>

/* The verbs that sync a session: start, sync, watch, stop, diff. */

static void
free_opts(struct sb_sync_opts *o)
{
	free((void *)o->exclude);
	free((void *)o->exclude_from);
}

int
run_start(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session_start how = SB_SESSION_START_INIT;
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { 0 };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	struct progress *p;
	int r = sync_args_apply(a, &o);

	(void)argc;
	if (r)
		return r;
	how.name = a->name;
	how.also = terminated(&a->also);
	how.conflict_rules = terminated(&a->conflict_rules);
	how.owner_pid = a->owner < 0 ? 0 : a->owner ? a->owner : SB_SESSION_NO_OWNER;
	o.log = stderr_log(a);
	p = progress_new(a, &o);
	r = sb_session_start(argv[0], argv[1], &how, &o, (enum sb_session_conflict)a->conflict, &s,
		&res, &err);
	progress_end(p);
	if (r == 0 && !a->json && !a->quiet)
		(void)printf("session %s: %s and %s\n", s.name, s.pairs[0].local,
			s.pairs[0].remote);
	r = report(a, r, &err, &res);
	sb_sync_result_free(&res);
	sb_session_free(&s);
	free((void *)how.also);
	free((void *)how.conflict_rules);
	free_opts(&o);
	return r;
}

static int
sync_session(struct sync_args *a, int argc, char **argv, enum sb_session_reason reason)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { 0 };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	struct progress *p;
	int r = sync_args_apply(a, &o);

	if (r)
		return r;
	o.log = stderr_log(a);
	res.reason = "turn";
	r = sb_session_load(o.state_dir, argc ? argv[0] : NULL, NULL, &s, &err);
	if (r == 0) {
		p = progress_new(a, &o);
		r = sb_session_sync(&s, reason, &o, (enum sb_session_conflict)a->conflict, &res,
			&err);
		progress_end(p);
	}
	r = report(a, r, &err, &res);
	sb_sync_result_free(&res);
	sb_session_free(&s);
	free_opts(&o);
	return r;
}

int
run_sync(void *values, int argc, char **argv)
{
	return sync_session(values, argc, argv, SB_REASON_TURN);
}

struct watching {
	const struct sync_args *a;
	bool conflicts;
	size_t errors; /* in the sync before */
};

/*
 * A line when something was done; nothing for nothing, nor again for files that still cannot be
 * synced.
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

int
run_watch(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct watching w = { .a = a };
	struct sb_session_watch how = SB_SESSION_WATCH_INIT;
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	int r = sync_args_apply(a, &o);

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
	free_opts(&o);
	return r < 0 ? exit_code(r) : w.conflicts ? EXIT_CONFLICTS : EXIT_DONE;
}

int
run_stop(void *values, int argc, char **argv)
{
	return sync_session(values, argc, argv, SB_REASON_STOP);
}

int
run_diff(void *values, int argc, char **argv)
{
	struct sync_args *a = values;

	a->dry_run = true;
	return argc == 2 ? run_sync_mirror(a, argv) : sync_session(a, argc, argv, SB_REASON_TURN);
}
