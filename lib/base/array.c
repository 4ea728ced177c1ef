/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/array.h>

#include <stdlib.h>

bool
sb_array_grow(void **v, size_t *cap, size_t n, size_t size)
{
	size_t want = *cap ? *cap : 8;
	size_t bytes;
	void *grown;

	if (n <= *cap)
		return true;
	while (want < n)
		if (__builtin_mul_overflow(want, (size_t)2, &want))
			return false;
	if (__builtin_mul_overflow(want, size, &bytes))
		return false;
	grown = realloc(*v, bytes);
	if (!grown)
		return false;
	*v = grown;
	*cap = want;
	return true;
}
