/* SPDX-License-Identifier: MIT */
/* sbsync conflicts: the versions kept aside. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/str.h>
#include <bin/sbsync/options.h>

/* The version in place against the one beside it. */
static void
diff(const struct sb_session_saved *c)
{
	sb_autofree char *in_place = sb_str_printf("%s/%s", c->root, c->path);
	sb_autofree char *beside = sb_str_printf("%s/%s", c->root, c->saved_as);
	struct sb_error err = { 0 };
	char a[4096], b[4096];
	int old, other;

	if (!in_place || !beside)
		return;
	old = open(in_place, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	other = open(beside, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (show_diff(sb_escape(c->path, strlen(c->path), a, sizeof a), old,
		    sb_escape(c->saved_as, strlen(c->saved_as), b, sizeof b), other, &err) < 0)
		complain("%s", err.msg);
	if (old >= 0)
		(void)close(old);
	if (other >= 0)
		(void)close(other);
}

static void
show(const struct sync_args *a, const struct sb_session_saved *c)
{
	char root[4096], path[4096], as[4096], t[32];

	sb_escape(c->root, strlen(c->root), root, sizeof root);
	sb_escape(c->path, strlen(c->path), path, sizeof path);
	sb_escape(c->saved_as, strlen(c->saved_as), as, sizeof as);
	(void)printf("%s/%s: %s, %s\n  the other version: %s (%llu bytes)\n", root, path,
		time_text(c->when, t, sizeof t), c->why, as, (unsigned long long)c->size);
	if (a->diff)
		diff(c);
}

static json_t *
as_json(const struct sb_session_saved *c)
{
	json_t *o = json_pack("{s:I, s:I, s:s}", "size", (json_int_t)c->size, "time",
		(json_int_t)c->when, "why", c->why);

	json_set_path(o, "root", c->root);
	json_set_path(o, "path", c->path);
	json_set_path(o, "saved_as", c->saved_as);
	return o;
}

static int
conflicts_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session_saved_list l = { 0 };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	json_t *rows = a->json ? json_array() : NULL;
	int r = find_session(argc ? argv[0] : NULL, &s, &err);

	if (r == 0)
		r = sb_session_conflicts(&s, NULL, &l, &err);
	if (r < 0)
		complain("%s", err.msg);
	for (size_t i = 0; i < l.n; i++)
		if (rows)
			json_array_append_new(rows, as_json(&l.v[i]));
		else
			show(a, &l.v[i]);
	if (l.n && !rows)
		(void)printf("next: sbsync resolve --name %s --take local|runtime|merged PATH, or "
			     "--edit PATH\n",
			s.name);
	if (rows)
		print_json(rows);
	sb_session_saved_free(&l);
	sb_session_free(&s);
	return r < 0 ? exit_code(r) : EXIT_DONE;
}

static const struct sb_opt options[] = {
	OPT_FLAG(0, "diff", diff, "show what differs, from the version in place to the other"),
	OPTIONS_JSON,
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_conflicts = {
	.name = "conflicts",
	.args = "[SESSION]",
	.help = "list the versions that conflicts kept aside",
	.opts = options,
	.max_args = 1,
	.run = conflicts_verb,
};
