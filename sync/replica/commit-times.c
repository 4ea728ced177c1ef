/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/commit-times.h>

#include <stdlib.h>

static struct sb_commit_times_slot *
slot_of(const struct sb_commit_times *t, uint64_t ino)
{
	size_t i = (size_t)(ino * 0x9e3779b97f4a7c15u >> 20) & (t->cap - 1);

	while (t->v[i].ino && t->v[i].ino != ino)
		i = (i + 1) & (t->cap - 1);
	return &t->v[i];
}

static int
grow(struct sb_commit_times *t, struct sb_error *err)
{
	struct sb_commit_times more = { .n = t->n, .cap = t->cap ? t->cap * 2 : 64 };

	more.v = calloc(more.cap, sizeof *more.v);
	if (!more.v)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	for (size_t i = 0; i < t->cap; i++)
		if (t->v[i].ino)
			*slot_of(&more, t->v[i].ino) = t->v[i];
	free(t->v);
	*t = more;
	return 0;
}

int
sb_commit_times_set(struct sb_commit_times *t, const struct stat *st, int64_t mtime,
	struct sb_error *err)
{
	struct sb_commit_times_slot *s;
	int r = 0;

	if (!S_ISREG(st->st_mode) || st->st_nlink < 2)
		return 0;
	if (t->n * 2 >= t->cap)
		r = grow(t, err);
	if (r < 0)
		return r;
	s = slot_of(t, st->st_ino);
	t->n += s->ino == 0;
	s->ino = st->st_ino;
	s->mtime = mtime;
	return 0;
}

const int64_t *
sb_commit_times_find(const struct sb_commit_times *t, uint64_t ino)
{
	const struct sb_commit_times_slot *s = t->n && ino ? slot_of(t, ino) : NULL;

	return s && s->ino ? &s->mtime : NULL;
}

void
sb_commit_times_free(struct sb_commit_times *t)
{
	free(t->v);
	*t = (struct sb_commit_times){ 0 };
}
