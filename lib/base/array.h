/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_ARRAY_H
#define SB_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes room for at least `n` elements of `size` bytes in the heap block `*v` of `*cap` elements,
 * doubling it. False when memory is out or the size overflows; block and `*cap` are as before then.
 */
bool sb_array_grow(void **v, size_t *cap, size_t n, size_t size);

#endif
