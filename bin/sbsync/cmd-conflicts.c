/* SPDX-License-Identifier: MIT */
/* sbsync conflicts: the versions kept aside. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/sbsync/options.h>

static int
conflicts_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session_saved_list l = { 0 };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	json_t *rows = a->json ? json_array() : NULL;
	int r = load_session(argc, argv, &s);

	if (r)
		return r;
	r = sb_session_conflicts(&s, NULL, &l, &err);
	if (r < 0)
		complain("%s", err.msg);
	for (size_t i = 0; i < l.n; i++) {
		const struct sb_session_saved *c = &l.v[i];
		char root[4096], path[4096], as[4096], t[32];

		sb_escape(c->root, strlen(c->root), root, sizeof root);
		sb_escape(c->path, strlen(c->path), path, sizeof path);
		sb_escape(c->saved_as, strlen(c->saved_as), as, sizeof as);
		if (rows) {
			json_t *o = json_pack("{s:I, s:I, s:s}", "size", (json_int_t)c->size,
				"time", (json_int_t)c->when, "why", c->why);

			json_set_path(o, "root", c->root);
			json_set_path(o, "path", c->path);
			json_set_path(o, "saved_as", c->saved_as);
			json_array_append_new(rows, o);
		} else
			(void)printf("%s/%s: %s, %s\n  the other version: %s (%llu bytes)\n", root,
				path, time_text(c->when, t, sizeof t), c->why, as,
				(unsigned long long)c->size);
	}
	if (rows)
		print_json(rows);
	sb_session_saved_free(&l);
	sb_session_free(&s);
	return r < 0 ? exit_code(r) : EXIT_DONE;
}

const struct sb_cmd cmd_conflicts = {
	.name = "conflicts",
	.args = "[SESSION]",
	.help = "list the versions that conflicts kept aside",
	.opts = list_options,
	.max_args = 1,
	.run = conflicts_verb,
};
