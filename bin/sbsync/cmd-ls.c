/* SPDX-License-Identifier: MIT */
/* sbsync ls: the sessions. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bin/sbsync/options.h>

/* Does the session have all the labels that were asked for? KEY alone: with any value. */
static bool
wanted(const struct sync_args *a, const struct sb_session *s)
{
	for (size_t i = 0; i < a->labels.n; i++) {
		const char *want = a->labels.v[i];
		size_t n = strlen(want);
		bool found = false;

		for (size_t k = 0; k < s->labels.n; k++)
			found = found || strcmp(s->labels.v[k], want) == 0 ||
				(!strchr(want, '=') && strncmp(s->labels.v[k], want, n) == 0 &&
					s->labels.v[k][n] == '=');
		if (!found)
			return false;
	}
	return true;
}

static void
show(const struct sb_session *s, bool first)
{
	char t[32], at[512], there[512], pid[24] = "-";
	int64_t watcher = sb_session_watcher(s, NULL);

	if (first)
		(void)printf("%-16s %-9s %-19s %9s %8s  %s\n", "SESSION", "STATE", "LAST SYNC",
			"CONFLICTS", "WATCHER", "LOCAL <-> REMOTE");
	if (watcher)
		(void)snprintf(pid, sizeof pid, "%lld", (long long)watcher);
	(void)printf("%-16s %-9s %-19s %9zu %8s  %s <-> %s\n", s->name,
		s->paused ? "paused" : sb_session_state_name(s->state),
		time_text(s->last_sync, t, sizeof t), count_conflicts(s), pid,
		sb_escape(s->pairs[0].local, strlen(s->pairs[0].local), at, sizeof at),
		sb_escape(s->pairs[0].remote, strlen(s->pairs[0].remote), there, sizeof there));
}

static int
ls_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session_list l = { 0 };
	struct sb_error err = { 0 };
	json_t *rows = a->json ? json_array() : NULL;
	size_t n = 0;
	int r = sb_session_load_all(NULL, &l, &err);

	(void)argc;
	(void)argv;
	if (r < 0) {
		complain("%s", err.msg);
		return exit_code(r);
	}
	for (size_t i = 0; i < l.n; i++) {
		if (!wanted(a, &l.v[i]))
			continue;
		if (rows)
			json_array_append_new(rows, session_json(&l.v[i]));
		else
			show(&l.v[i], n == 0);
		n++;
	}
	if (!rows && !n && isatty(STDOUT_FILENO))
		(void)printf("no sessions; 'sbsync start LOCAL REMOTE' opens one\n");
	for (size_t i = 0; i < l.bad.n; i++)
		complain("%s", l.bad.v[i]);
	r = l.bad.n ? EXIT_FAILED : EXIT_DONE;
	sb_session_list_free(&l);
	if (rows)
		print_json(rows);
	return r;
}

static const struct sb_opt options[] = {
	OPT_LIST(0, "label", labels, "KEY[=VALUE]", "only sessions with this label; repeatable"),
	OPTIONS_JSON,
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_ls = {
	.name = "ls",
	.args = "",
	.help = "list the sessions",
	.opts = options,
	.max_args = 0,
	.run = ls_verb,
};
