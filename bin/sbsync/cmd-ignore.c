/* SPDX-License-Identifier: MIT */
/* sbsync ignore: shows and changes what a session leaves out. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/sbsync/options.h>

static void
show(const struct sb_session_ignored_list *l, size_t i)
{
	char dir[4096], text[8192];
	const char *d = l->dirs.v[i];

	(void)printf("%-12s %s%s%s\n", l->sources.v[i],
		sb_escape(l->patterns.v[i], strlen(l->patterns.v[i]), text, sizeof text),
		*d ? "  in " : "", *d ? sb_escape(d, strlen(d), dir, sizeof dir) : "");
}

static json_t *
as_json(const struct sb_session *s, size_t k, const struct sb_session_ignored_list *l)
{
	json_t *rows = json_array(), *o = json_object();

	for (size_t i = 0; i < l->patterns.n; i++) {
		json_t *row = json_object();

		json_set_path(row, "pattern", l->patterns.v[i]);
		(void)json_object_set_new(row, "source", json_string(l->sources.v[i]));
		json_set_path(row, "dir", l->dirs.v[i]);
		(void)json_array_append_new(rows, row);
	}
	json_set_path(o, "local", s->pairs[k].local);
	(void)json_object_set_new(o, "patterns", rows);
	return o;
}

static int
list(const struct sync_args *a, const struct sb_session *s, struct sb_error *err)
{
	json_t *all = a->json ? json_array() : NULL;
	int r = 0;

	for (size_t k = 0; r == 0 && k < s->n_pairs; k++) {
		struct sb_session_ignored_list l = { 0 };

		r = sb_session_ignored(s, NULL, k, &l, err);
		if (r < 0)
			break;
		if (all)
			(void)json_array_append_new(all, as_json(s, k, &l));
		else if (s->n_pairs > 1)
			(void)printf("%s:\n", s->pairs[k].local);
		for (size_t i = 0; !all && i < l.patterns.n; i++)
			show(&l, i);
		sb_session_ignored_free(&l);
	}
	if (all && r == 0)
		print_json(all);
	else
		json_decref(all);
	return r;
}

static int
ignore_verb(void *values, int argc, char **argv)
{
	const struct sync_args *a = values;
	bool listing = strcmp(argv[0], "list") == 0, add = strcmp(argv[0], "add") == 0;
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	int at = listing ? 1 : 2, r;

	if ((!listing && !add && strcmp(argv[0], "rm") != 0) || argc < at || argc > at + 1) {
		complain("usage: sbsync ignore list [SESSION] | add PATTERN [SESSION] | rm PATTERN "
			 "[SESSION]");
		return EXIT_USAGE;
	}
	r = load_session(argc - at, argv + at, &s);
	if (r)
		return r;
	r = listing ? list(a, &s, &err) : sb_session_ignore(&s, NULL, argv[1], add, &err);
	if (r < 0)
		complain("%s", err.msg);
	sb_session_free(&s);
	return exit_code(r);
}

const struct sb_cmd cmd_ignore = {
	.name = "ignore",
	.args = "list [SESSION] | add PATTERN [SESSION] | rm PATTERN [SESSION]",
	.help = "show or change what a session leaves out",
	.details = "Counts from the next run on and deletes nothing: what is left out now stays\n"
		   "where it is on both sides, what no longer is is compared anew.",
	.opts = list_options,
	.min_args = 1,
	.max_args = 3,
	.run = ignore_verb,
};
