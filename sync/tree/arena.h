/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_ARENA_H
#define SBSYNC_ARENA_H

#include <stddef.h>

/*
 * Memory that is given out in pieces and freed all at once. Thread-safe. Pieces from sb_arena_alloc
 * are aligned to 8 bytes and not cleared; pieces from sb_arena_bytes are packed without gaps.
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
