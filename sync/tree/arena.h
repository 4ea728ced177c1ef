/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_ARENA_H
#define SBSYNC_ARENA_H

#include <stddef.h>

/*
 * Gives out memory in pieces and frees all of it at once. Thread-safe. sb_arena_alloc aligns its
 * pieces to 8 bytes and does not clear them; sb_arena_bytes packs its pieces without gaps.
 */
struct sb_arena;

struct sb_arena *sb_arena_new(void);
void sb_arena_free(struct sb_arena *a);

/* NULL: out of memory. A size of 0 gives a valid pointer. */
void *sb_arena_alloc(struct sb_arena *a, size_t size);
char *sb_arena_bytes(struct sb_arena *a, size_t size);
/* A NUL-terminated copy of `len` bytes. */
char *sb_arena_strdup(struct sb_arena *a, const char *s, size_t len);

#endif
