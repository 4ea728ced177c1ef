/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/tree/arena.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Chunks double from the first size to the last, so that small manifests stay small. */
#define CHUNK_FIRST ((size_t)8 << 10)
#define CHUNK_LAST ((size_t)1 << 20)

struct chunk {
	struct chunk *next;
	uint64_t data[];
};

struct sb_arena {
	pthread_mutex_t mu;
	struct chunk *chunks;
	/*
	 * What is free in the current chunk: aligned pieces come from the low end, bytes from the
	 * high end.
	 */
	char *low;
	char *high;
	size_t next_size;
};

struct sb_arena *
sb_arena_new(void)
{
	struct sb_arena *a = calloc(1, sizeof *a);

	if (!a)
		return NULL;
	if (pthread_mutex_init(&a->mu, NULL) != 0) {
		free(a);
		return NULL;
	}
	a->next_size = CHUNK_FIRST;
	return a;
}

void
sb_arena_free(struct sb_arena *a)
{
	struct chunk *c;

	if (!a)
		return;
	while ((c = a->chunks)) {
		a->chunks = c->next;
		free(c);
	}
	(void)pthread_mutex_destroy(&a->mu);
	free(a);
}

static char *
add_chunk(struct sb_arena *a, size_t size)
{
	struct chunk *c;

	if (size > SIZE_MAX - sizeof *c)
		return NULL;
	c = malloc(sizeof *c + size);
	if (!c)
		return NULL;
	c->next = a->chunks;
	a->chunks = c;
	return (char *)c->data;
}

/* Makes room for `size` bytes in the current chunk, or returns a piece of its own in `out_own`. */
static int
make_room(struct sb_arena *a, size_t size, char **out_own)
{
	*out_own = NULL;
	if (a->low && (size_t)(a->high - a->low) >= size)
		return 0;
	if (size > a->next_size / 4) {
		*out_own = add_chunk(a, size);
		return *out_own ? 0 : -1;
	}
	/* malloc's own header keeps the whole a round number of pages. */
	a->low = add_chunk(a, a->next_size - sizeof(struct chunk) - 16);
	if (!a->low)
		return -1;
	a->high = a->low + a->next_size - sizeof(struct chunk) - 16;
	if (a->next_size < CHUNK_LAST)
		a->next_size *= 2;
	return 0;
}

void *
sb_arena_alloc(struct sb_arena *a, size_t size)
{
	char *p = NULL;

	if (size > SIZE_MAX - 7)
		return NULL;
	size = (size + 7) & ~(size_t)7;
	pthread_mutex_lock(&a->mu);
	if (make_room(a, size, &p) == 0 && !p) {
		p = a->low;
		a->low += size;
	}
	pthread_mutex_unlock(&a->mu);
	return p;
}

char *
sb_arena_bytes(struct sb_arena *a, size_t size)
{
	char *p = NULL;

	pthread_mutex_lock(&a->mu);
	if (make_room(a, size, &p) == 0 && !p) {
		a->high -= size;
		p = a->high;
	}
	pthread_mutex_unlock(&a->mu);
	return p;
}

char *
sb_arena_strdup(struct sb_arena *a, const char *s, size_t len)
{
	char *p = len < SIZE_MAX ? sb_arena_bytes(a, len + 1) : NULL;

	if (p) {
		memcpy(p, s, len);
		p[len] = 0;
	}
	return p;
}
