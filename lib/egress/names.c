/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/names.h>

#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024
#define SLOTS 65534 /* 198.19.0.1 to 198.19.255.254 */

struct sb_names {
	struct sb_name *bucket[BUCKETS];
	struct sb_name *slot[SLOTS];
	size_t n;
	uint16_t next; /* slot to try first: one that was freed is the last to be used again */
};

struct sb_names *
sb_names_new(void)
{
	return calloc(1, sizeof(struct sb_names));
}

void
sb_names_free(struct sb_names *t)
{
	for (size_t i = 0; t && i < SLOTS; i++)
		free(t->slot[i]);
	free(t);
}

static size_t
bucket_of(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h % BUCKETS;
}

bool
sb_names_is_alias(const struct sb_netaddr *a)
{
	return a->family == 4 && a->b[0] == 198 && a->b[1] == 19;
}

struct sb_name *
sb_names_find(struct sb_names *t, const char *name)
{
	struct sb_name *e = t->bucket[bucket_of(name)];

	while (e && strcmp(e->name, name) != 0)
		e = e->next;
	return e;
}

struct sb_name *
sb_names_by_alias(struct sb_names *t, const struct sb_netaddr *a)
{
	size_t slot = (size_t)a->b[2] << 8 | a->b[3];

	return sb_names_is_alias(a) && slot >= 1 && slot <= SLOTS ? t->slot[slot - 1] : NULL;
}

static void
drop(struct sb_names *t, struct sb_name *e)
{
	struct sb_name **p = &t->bucket[bucket_of(e->name)];

	while (*p != e)
		p = &(*p)->next;
	*p = e->next;
	t->slot[e->slot] = NULL;
	t->n--;
	free(e);
}

static bool
make_room(struct sb_names *t)
{
	struct sb_name *oldest = NULL;

	if (t->n < SB_NAMES_MAX)
		return true;
	for (size_t i = 0; i < SLOTS; i++) {
		struct sb_name *e = t->slot[i];

		if (e && e->users == 0 && (!oldest || e->used_ms < oldest->used_ms))
			oldest = e;
	}
	if (oldest)
		drop(t, oldest);
	return oldest != NULL;
}

struct sb_name *
sb_names_get(struct sb_names *t, const char *name, int64_t now_ms)
{
	struct sb_name *e = sb_names_find(t, name), **bucket;

	if (!e) {
		e = make_room(t) ? calloc(1, sizeof *e) : NULL;
		if (!e)
			return NULL;
		(void)memccpy(e->name, name, '\0', sizeof e->name - 1);
		while (t->slot[t->next])
			t->next = (uint16_t)((t->next + 1) % SLOTS);
		e->slot = t->next;
		t->next = (uint16_t)((t->next + 1) % SLOTS);
		e->alias = (struct sb_netaddr){ 4,
			{ 198, 19, (uint8_t)((e->slot + 1) >> 8), (uint8_t)(e->slot + 1) } };
		t->slot[e->slot] = e;
		bucket = &t->bucket[bucket_of(name)];
		e->next = *bucket;
		*bucket = e;
		t->n++;
	}
	e->used_ms = now_ms;
	return e;
}
