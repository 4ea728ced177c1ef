/* SPDX-License-Identifier: MIT */
/* Which session a verb is about, and how it is shown. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bin/sbsync/sbsync.h>

char *
time_text(int64_t t, char *out, size_t size)
{
	time_t tt = (time_t)t;
	struct tm tm;

	if (!t || !localtime_r(&tt, &tm) || !strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm))
		(void)snprintf(out, size, "never");
	return out;
}

json_t *
session_json(const struct sb_session *s)
{
	json_t *pairs = json_array();

	for (size_t i = 0; i < s->n_pairs; i++) {
		json_t *o = json_object();

		json_set_path(o, "local", s->pairs[i].local);
		json_set_path(o, "remote", s->pairs[i].remote);
		json_array_append_new(pairs, o);
	}
	return json_pack("{s:s, s:s, s:o, s:I, s:I, s:b, s:I, s:s, s:I, s:I, s:s?}", "name",
		s->name, "state", sb_session_state_name(s->state), "pairs", pairs, "created",
		(json_int_t)s->created, "last_sync", (json_int_t)s->last_sync, "owned",
		sb_session_owned(s), "heartbeat", (json_int_t)s->heartbeat, "conflict",
		sb_session_conflict_name(s->conflict), "failures", (json_int_t)s->failures,
		"next_try", (json_int_t)s->next_try, "last_error", s->last_error);
}

int
load_session(int argc, char **argv, struct sb_session *out)
{
	struct sb_error err = { 0 };
	int r = sb_session_load(NULL, argc ? argv[0] : NULL, NULL, out, &err);

	if (r < 0)
		complain("%s", err.msg);
	return r < 0 ? exit_code(r) : 0;
}

int
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
