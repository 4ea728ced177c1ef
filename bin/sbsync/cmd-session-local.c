/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/str.h>
#include <bin/sbsync/sbsync.h>
#include <sbsync/session.h>

/* The verbs that change the local side of a session alone: resolve, undo. */

/* Without a name: the open session of this directory, else the one stopped last. */
static int
find_session(const char *name, struct sb_session *out, struct sb_error *err)
{
	struct sb_session_list all = { 0 };
	struct sb_session *found = NULL;
	char real[PATH_MAX];
	int r = sb_session_load(NULL, name, NULL, out, err);

	if (name || r != SB_E_NOTFOUND || !realpath(".", real) ||
		sb_session_load_all(NULL, &all, NULL) < 0)
		return r;
	for (size_t i = 0; i < all.n; i++)
		for (size_t k = 0; k < all.v[i].n_pairs; k++) {
			size_t n = strlen(all.v[i].pairs[k].local);

			if (strncmp(real, all.v[i].pairs[k].local, n) == 0 &&
				(!real[n] || real[n] == '/') &&
				(!found || all.v[i].last_sync > found->last_sync))
				found = &all.v[i];
		}
	if (found) {
		*out = *found;
		memset(found, 0, sizeof *found);
		r = 0;
	}
	sb_session_list_free(&all);
	return r;
}

int
run_undo(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { .reason = "undo" };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	int r = sync_args_apply(a, &o);

	if (r)
		return r;
	o.log = stderr_log(a);
	r = find_session(argc ? argv[0] : NULL, &s, &err);
	if (r == 0)
		r = sb_session_undo(&s, &o, &res, &err);
	r = report(a, r, &err, &res);
	sb_sync_result_free(&res);
	sb_session_free(&s);
	return r;
}

/* The file may be gone, its directory not. */
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

int
run_resolve(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { .reason = "resolve" };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	char *path = NULL;
	int r;

	if (a->take < 0 || (argc > 0) == a->all) {
		complain("resolve needs %s; try 'sbsync resolve --help'",
			a->take < 0 ? "--take local, runtime or merged" : "a PATH or --all");
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
	r = find_session(a->name, &s, &err);
	if (r == 0)
		r = sb_session_resolve(&s, path, (enum sb_session_take)a->take, &o, &res, &err);
	r = report(a, r, &err, &res);
	sb_sync_result_free(&res);
	sb_session_free(&s);
	free(path);
	return r;
}
