/* SPDX-License-Identifier: MIT */
/* sbsync doctor: checks the way to another machine, or this machine. */
#include "config.h"

#include <stdio.h>

#include <bin/sbsync/options.h>
#include <sbsync/doctor.h>

struct visit {
	const struct sync_args *a;
	json_t *checks;  /* NULL: lines on stdout */
	char place[512]; /* what was checked */
};

static const char *const states[] = { "good", "warning", "bad", "skipped" };

static void
tell(const struct sb_doctor_result *r, void *arg)
{
	struct visit *v = arg;
	const char *check = sb_doctor_name(r->what), *state = states[r->state];

	(void)snprintf(v->place, sizeof v->place, "%s", r->place);
	if (v->checks)
		json_array_append_new(v->checks,
			json_pack("{s:s, s:s, s:s}", "check", check, "state", state, "text",
				r->text));
	else if (r->state != SB_DOCTOR_GOOD || !v->a->quiet)
		(void)printf("%-8s %-13s %s\n", state, check, r->text);
}

static int
doctor_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct visit v = { .a = a, .checks = a->json ? json_array() : NULL };
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_error err = { 0 };
	int bad = sync_args_apply(a, &o);

	if (bad)
		return bad;
	o.log = stderr_log(a);
	(void)snprintf(v.place, sizeof v.place, "this machine");
	bad = sb_doctor_check(argc ? argv[0] : NULL, &o, tell, &v, &err);
	if (v.checks) {
		const char *result = bad < 0 ? "error" : bad > 0 ? "bad" : "ok";
		json_t *j = json_pack("{s:s, s:s, s:o}", "result", result, "place", v.place,
			"checks", v.checks);

		if (bad < 0)
			json_object_set_new(j, "error", json_string(err.msg));
		print_json(j);
	}
	if (bad < 0)
		complain("%s", err.msg);
	return bad < 0 ? exit_code(bad) : bad > 0 ? EXIT_FAILED : EXIT_DONE;
}

static const struct sb_opt options[] = {
	OPTIONS_SSH,
	OPTIONS_TIMEOUT,
	OPTIONS_JSON,
	OPT_FLAG('q', "quiet", quiet, "print only what is wrong"),
	OPTIONS_VERBOSE,
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_doctor = {
	.name = "doctor",
	.args = "[REMOTE]",
	.help = "check the way to REMOTE, or this machine; say what to do",
	.details = "REMOTE is [user@]host:path or ssh://[user@]host[:port]/path. Nothing\n"
		   "changes there, except that the agent is brought there as for a sync.",
	.opts = options,
	.max_args = 1,
	.run = doctor_verb,
};
