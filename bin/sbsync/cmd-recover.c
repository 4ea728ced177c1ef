/* SPDX-License-Identifier: MIT */
/* sbsync recover: syncs back the sessions whose owner is gone. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/common/progress.h>
#include <bin/sbsync/options.h>

struct recovery {
	const struct sync_args *a;
	json_t *rows;
	size_t conflicts;
};

/* One line, or one object, for each session. */
static void
tell_recovery(const struct sb_session *s, const char *result, const struct sb_sync_result *res,
	const struct sb_error *err, void *arg)
{
	struct recovery *r = arg;
	bool failed = strcmp(result, "failed") == 0, done = strcmp(result, "done") == 0,
	     nothing = strcmp(result, "nothing") == 0;
	char t[32];

	r->conflicts += res->conflicts.n;
	if (r->rows) {
		json_array_append_new(r->rows,
			json_pack("{s:s?, s:s, s:s?, s:s?, s:I, s:I, s:I, s:I}", "session",
				s ? s->name : NULL, "result", result, "state",
				s ? sb_session_state_name(s->state) : NULL, "error",
				failed ? err->msg : NULL, "files_synced",
				(json_int_t)res->files_synced, "files_deleted",
				(json_int_t)res->files_deleted, "conflicts",
				(json_int_t)res->conflicts.n, "next_try",
				(json_int_t)(s ? s->next_try : 0)));
		return;
	}
	if (!s)
		complain("%s", err->msg);
	else if (failed)
		complain("%s: %s; it stays %s, next try at %s", s->name, err->msg,
			sb_session_state_name(s->state), time_text(s->next_try, t, sizeof t));
	else if (r->a->quiet)
		return;
	else if (done)
		(void)printf("%s: synced back, %llu files, %llu deleted, %zu conflicts\n", s->name,
			(unsigned long long)res->files_synced,
			(unsigned long long)res->files_deleted, res->conflicts.n);
	else if (strcmp(result, "later") == 0)
		(void)printf("%s: %s, next try at %s: %s\n", s->name,
			sb_session_state_name(s->state), time_text(s->next_try, t, sizeof t),
			s->last_error ? s->last_error : "");
	else if (!nothing || r->a->verbose)
		(void)printf("%s: %s\n", s->name, result);
}

static int
recover_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct recovery r = { .a = a };
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_error err = { 0 };
	int n;

	if (!argc && !a->all) {
		complain("recover needs a session or --all; try 'sbsync recover --help'");
		return EXIT_USAGE;
	}
	n = sync_args_apply(a, &o);
	if (n)
		return n;
	o.log = stderr_log(a);
	r.rows = a->json ? json_array() : NULL;
	sync_args_progress(a, &o);
	n = sb_session_recover(argc ? argv[0] : NULL, a->now || argc, &o, tell_recovery, &r, &err);
	progress_end();
	if (r.rows)
		print_json(r.rows);
	/* --quiet, as a timer uses it, says nothing when an earlier run is still at work. */
	if (n < 0 && !(n == SB_E_LOCKED && a->quiet))
		complain("%s", err.msg);
	if (n < 0)
		return exit_code(n);
	return n > 0 ? EXIT_FAILED : r.conflicts ? EXIT_CONFLICTS : EXIT_DONE;
}

static const struct sb_opt options[] = {
	OPT_FLAG(0, "all", all, "every session"),
	OPT_FLAG(0, "now", now, "do not wait until the next try is due"),
	OPTIONS_SYNC,
	OPT_END,
};

const struct sb_cmd cmd_recover = {
	.name = "recover",
	.args = "[SESSION]",
	.help = "finish what a crash interrupted; for cron",
	.details = "Sessions whose owner is gone are synced back. Those that cannot be reached\n"
		   "are tried again, less and less often, until they are.",
	.opts = options,
	.max_args = 1,
	.run = recover_verb,
};
