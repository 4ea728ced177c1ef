/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_GROW_H
#define SB_HOST_GROW_H

#include <stdlib.h>

/*
 * Room for one more element in the array `v` of `n` elements of `size` bytes: returns the array,
 * moved when it was full, or NULL without memory (`v` is as it was then).
 */
static inline void *
sb_grow(void *v, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 8;
	void *moved;

	if (n < *cap)
		return v;
	moved = reallocarray(v, more, size);
	if (moved)
		*cap = more;
	return moved;
}

#endif
