/* SPDX-License-Identifier: MIT */
/* sbsync undo: takes the local side back to before a sync. */
#include "config.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bin/sbsync/options.h>

#define MS 1000000u /* in ns */

static int
list_runs(const struct sync_args *a, const struct sb_session *s)
{
	struct sb_session_undo_runs l = { 0 };
	struct sb_error err = { 0 };
	json_t *rows = a->json ? json_array() : NULL;
	int r = sb_session_undo_list(s, NULL, &l, &err);

	if (r < 0)
		complain("%s", err.msg);
	if (!rows && l.n)
		(void)printf("%-14s %-20s %-8s %8s %8s\n", "RUN", "TIME", "REASON", "CHANGED",
			"DELETED");
	for (size_t i = 0; i < l.n; i++) {
		const struct sb_session_undo_run *u = &l.v[i];
		char t[32];

		if (rows)
			json_array_append_new(rows,
				json_pack("{s:I, s:I, s:s, s:I, s:I}", "run",
					(json_int_t)(u->run / MS), "time",
					(json_int_t)(u->run / MS / 1000), "reason", u->reason,
					"changed", (json_int_t)u->changed, "deleted",
					(json_int_t)u->deleted));
		else
			(void)printf("%-14" PRIu64 " %-20s %-8s %8" PRIu64 " %8" PRIu64 "\n",
				u->run / MS, time_text((int64_t)(u->run / MS / 1000), t, sizeof t),
				u->reason, u->changed, u->deleted);
	}
	if (rows)
		print_json(rows);
	sb_session_undo_runs_free(&l);
	return r < 0 ? exit_code(r) : EXIT_DONE;
}

/* The local time that the text says; 0: it says none. */
static uint64_t
time_of(const char *text)
{
	static const char *const formats[] = { "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S",
		"%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d" };

	for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
		struct tm tm = { .tm_isdst = -1 };
		const char *end = strptime(text, formats[i], &tm);
		time_t t;

		if (!end || *end)
			continue;
		t = mktime(&tm);
		return t > 0 ? (uint64_t)t * 1000 * MS : 0;
	}
	return 0;
}

/* What --to means: the number of a run of the list, or a time. */
static int
find_run(const char *text, const struct sb_session *s, uint64_t *out)
{
	struct sb_session_undo_runs l = { 0 };
	struct sb_error err = { 0 };
	int r;

	*out = 0;
	if (text[strspn(text, "0123456789")]) {
		*out = time_of(text);
		if (*out)
			return EXIT_DONE;
		complain("--to %s is no run of 'sbsync undo --list' and no time like "
			 "2026-01-31 17:00",
			text);
		return EXIT_USAGE;
	}
	r = sb_session_undo_list(s, NULL, &l, &err);
	for (size_t i = 0; i < l.n; i++)
		if (l.v[i].run / MS == strtoull(text, NULL, 10))
			*out = l.v[i].run;
	sb_session_undo_runs_free(&l);
	if (r < 0)
		complain("%s", err.msg);
	else if (!*out)
		complain("session '%s' has no run %s: 'sbsync undo --list %s' shows them", s->name,
			text, s->name);
	return r < 0 ? exit_code(r) : *out ? EXIT_DONE : EXIT_FAILED;
}

static int
undo_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { .reason = "undo" };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	uint64_t to = 0;
	int r = sync_args_apply(a, &o);

	if (r)
		return r;
	if (a->list && a->to) {
		complain("undo takes --list or --to, not both");
		return EXIT_USAGE;
	}
	o.log = stderr_log(a);
	r = find_session(argc ? argv[0] : NULL, &s, &err);
	if (r == 0 && (a->list || a->to)) {
		int code = a->list ? list_runs(a, &s) : find_run(a->to, &s, &to);

		if (a->list || code != EXIT_DONE) {
			sb_session_free(&s);
			return code;
		}
	}
	if (r == 0)
		r = sb_session_undo_to(&s, to, &o, &res, &err);
	r = report(a, r, &err, &res);
	sb_sync_result_free(&res);
	sb_session_free(&s);
	return r;
}

static const struct sb_opt options[] = {
	OPT_FLAG(0, "list", list, "list the runs that can be undone, the newest first"),
	OPT_TEXT(0, "to", to, "RUN", "undo this run, or all since a TIME, with all after it"),
	OPTIONS_DRY_RUN,
	OPTIONS_TRUST_GIT,
	OPTIONS_JSON,
	OPTIONS_QUIET_VERBOSE,
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_undo = {
	.name = "undo",
	.args = "[SESSION]",
	.help = "put the local side back as it was before a sync",
	.details =
		"Without --to: before the last one. Files edited since then stay; undo puts the\n"
		"old version beside them. A second undo undoes the first.",
	.opts = options,
	.max_args = 1,
	.run = undo_verb,
};
