/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/run/partial.h>

#include <stdlib.h>

#define MIN_SIZE (1u << 20)

void
sb_partial_free(struct sb_partial *p)
{
	free(p->v);
	*p = (struct sb_partial){ 0 };
}

int
sb_partial_add(struct sb_partial *p, const struct sb_digest *d, uint64_t size, struct sb_error *err)
{
	if (size < MIN_SIZE)
		return 0;
	/* Grows when the count reaches a power of two. */
	if ((p->n & (p->n - 1)) == 0) {
		struct sb_have *v = reallocarray(p->v, p->n ? 2 * p->n : 1, sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "list of leftovers: out of memory");
		p->v = v;
	}
	p->v[p->n++] = (struct sb_have){ *d, size };
	return 0;
}

static int
by_size(const void *a, const void *b)
{
	uint64_t x = ((const struct sb_have *)a)->size, y = ((const struct sb_have *)b)->size;

	return x < y ? -1 : x > y;
}

void
sb_partial_sort(struct sb_partial *p)
{
	if (p->n)
		qsort(p->v, p->n, sizeof *p->v, by_size);
}

void
sb_partial_offer(const struct sb_partial *p, uint64_t size, struct sb_want *w)
{
	size_t lo = 0, hi = p->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->v[mid].size < size)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return;
	w->have = p->v[lo - 1].size;
	w->have_digest = p->v[lo - 1].digest;
}
