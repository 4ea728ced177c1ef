/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/runtime/box-stage.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/str.h>

/*
 * Directories that every machine has and everybody may search; what else is in them is hidden from
 * the box's maker.
 */
static const char *const places[] = { "/mnt", "/media", "/srv", "/opt", "/run", NULL };

/* Whether one of the files that the box's maker opens by name would be hidden. */
static bool
hides(const char *dir, const struct sb_box_runtime *b)
{
	const char *const needed[] = { b->o->state_dir, b->program, b->helper };
	size_t len = strlen(dir);

	for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
		if (strncmp(needed[i], dir, len) == 0 && (needed[i][len] == '/' || !needed[i][len]))
			return true;
	return false;
}

int
sb_box_stage_begin(struct sb_box_runtime *b, const struct sb_runtime_cmd *cmd,
	struct sb_box_stage *out, struct sb_error *err)
{
	*out = (struct sb_box_stage){ .owner = sb_runtime_owner(b->o, cmd->workspace) };
	if (!b->o->session_uid_count)
		return 0;
	if (!out->owner)
		return sb_fail(err, SB_E_RUNTIME,
			"the workspace belongs to none of the users of sessions");
	for (size_t i = 0; places[i] && !out->dir; i++) {
		struct stat st;

		if (lstat(places[i], &st) == 0 && S_ISDIR(st.st_mode) && !hides(places[i], b))
			out->dir = places[i];
	}
	return out->dir ? 0 : sb_fail(err, SB_E_RUNTIME, "no directory to show files in");
}

const char *
sb_box_stage_add(struct sb_box_stage *s, const char *from)
{
	if (!s->dir)
		return from;
	(void)snprintf(s->path, sizeof s->path, "%s/%zu", s->dir, s->from.n);
	sb_strlist_add(&s->from, from);
	return s->path;
}

const char *
sb_box_stage_add_work(struct sb_box_stage *s, const char *from)
{
	const char *path = sb_box_stage_add(s, from);

	s->work = s->from.n;
	return path;
}

void
sb_box_stage_argv(const struct sb_box_runtime *b, const struct sb_box *box,
	const struct sb_box_stage *s, struct sb_strlist *l)
{
	sb_strlist_add_all(l, (const char *[]){ b->helper, "place", NULL });
	for (int i = 0; i < SB_CGROUP_KINDS; i++)
		if (sb_cgroup_distinct(&box->group, i))
			sb_strlist_add_all(l, (const char *[]){ "-g", box->group.dir[i], NULL });
	if (s->dir)
		sb_strlist_add_all(l, (const char *[]){ "-S", s->dir, NULL });
	for (size_t i = 0; i < s->from.n; i++)
		sb_strlist_add_all(l,
			(const char *[]){ i + 1 == s->work ? "-W" : "-B", s->from.v[i], NULL });
	/* A list that lacks an entry is noticed with the one it goes into. */
	if (s->from.failed)
		l->failed = true;
}

void
sb_box_stage_free(struct sb_box_stage *s)
{
	sb_strlist_free(&s->from);
}
