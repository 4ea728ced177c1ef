/* SPDX-License-Identifier: MIT */
/* sbsync rm: forgets a session. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bin/sbsync/options.h>

#define LOST_SHOWN 10

/* Asks the sandbox, if it can be reached, which changes only it has, and prints them. */
static void
tell_loss(struct sb_session *s)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };
	char t[32], path[4096];

	o.dry_run = true;
	o.max_delete = INT64_MAX;
	o.cancel = signals_cancel();
	if (sb_session_sync(s, SB_REASON_STOP, &o, SB_SESSION_AS_STARTED, &res, &err) < 0) {
		(void)fprintf(stderr, "%s cannot be asked what it has: %s\n", s->pairs[0].remote,
			err.msg);
		if (s->last_sync)
			(void)fprintf(stderr, "Changes made there since %s stay only there.\n",
				time_text(s->last_sync, t, sizeof t));
		else
			(void)fprintf(stderr,
				"No sync has succeeded: all its changes stay only there.\n");
	} else if (!res.n_changes && !res.conflicts.n) {
		(void)fprintf(stderr, "Nothing changed in %s since the last sync.\n",
			s->pairs[0].remote);
	} else {
		(void)fprintf(stderr,
			"%zu changes in %s were not synced back and stay only there:\n",
			res.n_changes, s->pairs[0].remote);
		for (size_t i = 0; i < res.n_changes && i < LOST_SHOWN; i++)
			(void)fprintf(stderr, "  %-7s %s\n", res.changes[i].what,
				sb_escape(res.changes[i].path, strlen(res.changes[i].path), path,
					sizeof path));
		if (res.n_changes > LOST_SHOWN)
			(void)fprintf(stderr, "  and %zu more ('sbsync diff %s' lists them)\n",
				res.n_changes - LOST_SHOWN, s->name);
	}
	sb_sync_result_free(&res);
}

/* Tells what would be lost and asks whether that is meant. */
static bool
ask_discard(struct sb_session *s)
{
	char answer[16] = "";

	tell_loss(s);
	if (!isatty(STDIN_FILENO)) {
		complain("nobody is there to ask: 'sbsync rm --discard --yes %s' forgets the "
			 "session",
			s->name);
		return false;
	}
	(void)fprintf(stderr, "Forget session '%s'? [y/N] ", s->name);
	return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int
rm_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	int r = load_session(argc, argv, &s);

	if (r)
		return r;
	if (a->discard && s.state != SB_SESSION_STOPPED && s.state != SB_SESSION_STARTING &&
		!a->yes && !ask_discard(&s)) {
		sb_session_free(&s);
		return EXIT_FAILED;
	}
	r = sb_session_remove(&s, NULL, a->discard, &err);
	if (r < 0)
		complain("%s", err.msg);
	sb_session_free(&s);
	return exit_code(r);
}

static const struct sb_opt options[] = {
	OPT_FLAG(0, "discard", discard, "forget a session that was not synced back, after asking"),
	OPT_FLAG(0, "yes", yes, "do not ask"),
	OPTIONS_JSON,
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_rm = {
	.name = "rm",
	.args = "[SESSION]",
	.help = "forget a session",
	.opts = options,
	.max_args = 1,
	.run = rm_verb,
};
