/* SPDX-License-Identifier: MIT */
/* sbsync resolve: one version of a conflict stays. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/str.h>
#include <bin/sbsync/options.h>

/* The absolute path of a file that may be gone, in a directory that is there. */
static char *
full_path(const char *path)
{
	char real[PATH_MAX];
	sb_autofree char *dir = strdup(path);
	const char *leaf = strrchr(path, '/');
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (!dir)
		return NULL;
	leaf = leaf ? leaf + 1 : path;
	if (slash)
		slash[slash == dir] = 0;
	if (!realpath(slash ? dir : ".", real))
		return NULL;
	return sb_str_printf("%s/%s", strcmp(real, "/") == 0 ? "" : real, leaf);
}

/* The session that is named, else the one the path is in, else that of the current directory. */
static int
find(const struct sync_args *a, const char *path, struct sb_session *out, struct sb_error *err)
{
	sb_autofree char *dir = path && !a->name ? strdup(path) : NULL;
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (slash && slash > dir) {
		*slash = '\0';
		if (sb_session_load(NULL, NULL, dir, out, NULL) == 0)
			return 0;
	}
	return find_session(a->name, out, err);
}

/* The user makes one of both versions; it is in place then. */
static int
edit(const struct sb_session *s, const char *path, const struct sb_sync_opts *o,
	struct sb_error *err)
{
	struct sb_session_saved_list l = { 0 };
	int r = sb_session_conflicts(s, o->state_dir, &l, err), code = EXIT_FAILED;
	bool found = false;

	for (size_t i = 0; r == 0 && i < l.n && !found; i++) {
		sb_autofree char *in_place = sb_str_printf("%s/%s", l.v[i].root, l.v[i].path);
		sb_autofree char *beside = sb_str_printf("%s/%s", l.v[i].root, l.v[i].saved_as);

		if (!in_place || !beside ||
			(strcmp(path, in_place) != 0 && strcmp(path, beside) != 0))
			continue;
		found = true;
		if (o->dry_run)
			code = EXIT_DONE;
		else
			code = merge_by_hand(in_place, beside);
	}
	if (r < 0)
		complain("%s", err->msg);
	else if (!found)
		complain("%s is no conflict of session '%s': sbsync conflicts %s lists them", path,
			s->name, s->name);
	sb_session_saved_free(&l);
	return code;
}

static int
resolve_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { .reason = "resolve" };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	char *path = NULL;
	int r;

	if ((a->take < 0 && !a->edit) || (argc > 0) == a->all || (a->edit && a->all)) {
		complain("resolve needs %s; try 'sbsync resolve --help'",
			a->take < 0 && !a->edit ? "--take local, runtime or merged, or --edit" :
				a->edit         ? "a PATH with --edit" :
						  "a PATH or --all");
		return EXIT_USAGE;
	}
	if (a->edit && a->take >= 0) {
		complain("resolve takes --take or --edit, not both");
		return EXIT_USAGE;
	}
	r = sync_args_apply(a, &o);
	if (r)
		return r;
	o.log = stderr_log(a);
	if (argc && !(path = full_path(argv[0]))) {
		complain("%s: there is no such directory", argv[0]);
		return EXIT_FAILED;
	}
	r = find(a, path, &s, &err);
	if (r == 0 && a->edit) {
		int code = edit(&s, path, &o, &err);

		if (code) {
			sb_session_free(&s);
			free(path);
			return code;
		}
		a->take = SB_TAKE_LOCAL;
	}
	if (r == 0)
		r = sb_session_resolve(&s, path, (enum sb_session_take)a->take, &o, &res, &err);
	r = report(a, r, &err, &res);
	sb_sync_result_free(&res);
	sb_session_free(&s);
	free(path);
	return r;
}

static const char *const take_words[] = { "local", "runtime", "merged", NULL };

static const struct sb_opt options[] = {
	OPT_CHOICE(0, "take", take, "WHICH", take_words,
		"local, runtime, or merged (where it merges cleanly)"),
	OPT_FLAG(0, "edit", edit, "merge by hand, with your merge tool or editor"),
	OPT_FLAG(0, "all", all, "every conflict of the session"),
	OPT_TEXT(0, "name", name, "SESSION",
		"the session (default: that of the current directory)"),
	OPTIONS_DRY_RUN,
	OPTIONS_TRUST,
	OPTIONS_JSON,
	OPTIONS_QUIET_VERBOSE,
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_resolve = {
	.name = "resolve",
	.args = "[PATH]",
	.help = "decide conflicts: one version stays, the other goes",
	.details = "PATH is the file or the version saved beside it. The next sync carries the\n"
		   "decision over; undo takes it back.",
	.opts = options,
	.max_args = 1,
	.run = resolve_verb,
};
