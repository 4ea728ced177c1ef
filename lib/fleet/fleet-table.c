/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <fleet/fleet-table.h>

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include <base/random.h>

#define FIRST 1024

int
sb_fleet_table_init(struct sb_fleet_table *t, struct sb_error *err)
{
	memset(t, 0, sizeof *t);
	if (sb_random(&t->seed, sizeof t->seed, err) < 0)
		return SB_E_SYS;
	t->v = calloc(FIRST, sizeof *t->v);
	t->cap = FIRST;
	return t->v ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

void
sb_fleet_table_free(struct sb_fleet_table *t)
{
	for (size_t i = 0; t->v && i < t->cap; i++)
		free(t->v[i]);
	free(t->v);
	memset(t, 0, sizeof *t);
}

static size_t
home_of(const struct sb_fleet_table *t, const char *id)
{
	return XXH3_64bits_withSeed(id, strlen(id), t->seed) & (t->cap - 1);
}

/* Where the id is, or would be. */
static size_t
look(const struct sb_fleet_table *t, const char *id)
{
	size_t at = home_of(t, id);

	while (t->v[at] && strcmp(t->v[at]->id, id) != 0)
		at = (at + 1) & (t->cap - 1);
	return at;
}

struct sb_fleet_slot *
sb_fleet_table_find(const struct sb_fleet_table *t, const char *id)
{
	return t->v[look(t, id)];
}

static int
grow(struct sb_fleet_table *t)
{
	struct sb_fleet_table wider = *t;

	wider.cap = t->cap * 2;
	wider.v = calloc(wider.cap, sizeof *wider.v);
	if (!wider.v)
		return -1;
	for (size_t i = 0; i < t->cap; i++)
		if (t->v[i])
			wider.v[look(&wider, t->v[i]->id)] = t->v[i];
	free(t->v);
	*t = wider;
	return 0;
}

struct sb_fleet_slot *
sb_fleet_table_put(struct sb_fleet_table *t, const char *id)
{
	size_t at = look(t, id), size = sizeof(struct sb_fleet_slot) + strlen(id) + 1;

	if (t->v[at])
		return t->v[at];
	if (t->n * 3 >= t->cap * 2) {
		if (grow(t) < 0)
			return NULL;
		at = look(t, id);
	}
	t->v[at] = calloc(1, size);
	if (!t->v[at])
		return NULL;
	(void)memcpy(t->v[at]->id, id, strlen(id) + 1);
	t->n++;
	t->bytes += size;
	return t->v[at];
}

void
sb_fleet_table_remove(struct sb_fleet_table *t, struct sb_fleet_slot *s)
{
	size_t hole = look(t, s->id), mask = t->cap - 1;

	t->n--;
	t->bytes -= sizeof *s + strlen(s->id) + 1;
	free(s);
	t->v[hole] = NULL;
	/* What was pushed behind it moves up. */
	for (size_t i = (hole + 1) & mask; t->v[i]; i = (i + 1) & mask) {
		size_t home = home_of(t, t->v[i]->id);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		t->v[hole] = t->v[i];
		t->v[i] = NULL;
		hole = i;
	}
}
