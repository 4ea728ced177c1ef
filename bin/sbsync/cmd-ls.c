/* SPDX-License-Identifier: MIT */
/* sbsync ls: the sessions. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/sbsync/options.h>

static int
ls_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session_list l = { 0 };
	struct sb_error err = { 0 };
	json_t *rows = a->json ? json_array() : NULL;
	int r = sb_session_load_all(NULL, &l, &err);

	(void)argc;
	(void)argv;
	if (r < 0) {
		complain("%s", err.msg);
		return exit_code(r);
	}
	for (size_t i = 0; i < l.n; i++) {
		char t[32], at[512];

		if (rows)
			json_array_append_new(rows, session_json(&l.v[i]));
		else
			(void)printf("%-20s %-9s %-19s %s -> %s\n", l.v[i].name,
				sb_session_state_name(l.v[i].state),
				time_text(l.v[i].last_sync, t, sizeof t),
				sb_escape(l.v[i].pairs[0].local, strlen(l.v[i].pairs[0].local), at,
					sizeof at),
				l.v[i].pairs[0].remote);
	}
	for (size_t i = 0; i < l.bad.n; i++)
		complain("%s", l.bad.v[i]);
	r = l.bad.n ? EXIT_FAILED : EXIT_DONE;
	sb_session_list_free(&l);
	if (rows)
		print_json(rows);
	return r;
}

const struct sb_cmd cmd_ls = {
	.name = "ls",
	.args = "",
	.help = "list the sessions",
	.opts = list_options,
	.max_args = 0,
	.run = ls_verb,
};
