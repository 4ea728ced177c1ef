/* SPDX-License-Identifier: MIT */
/* sbsync status: one session. */
#include "config.h"

#include <stdio.h>

#include <bin/sbsync/options.h>

static int
status_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session s = { 0 };
	char t[32];
	int r = load_session(argc, argv, &s);

	if (r)
		return r;
	if (a->json) {
		print_json(session_json(&s));
	} else {
		(void)printf("session   %s\nstate     %s\nlast sync %s\n", s.name,
			sb_session_state_name(s.state), time_text(s.last_sync, t, sizeof t));
		(void)printf("owner     %s\n",
			!s.owner_pid                 ? "none" :
				sb_session_owned(&s) ? "alive" :
						       "gone");
		for (size_t i = 0; i < s.n_pairs; i++)
			(void)printf("pair      %s -> %s\n", s.pairs[i].local, s.pairs[i].remote);
		if (s.last_error)
			(void)printf("error     %s\n", s.last_error);
	}
	sb_session_free(&s);
	return r;
}

const struct sb_cmd cmd_status = {
	.name = "status",
	.args = "[SESSION]",
	.help = "show a session",
	.opts = list_options,
	.max_args = 1,
	.run = status_verb,
};
