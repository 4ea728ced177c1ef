/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_PARTIAL_H
#define SBSYNC_PARTIAL_H

#include <sync/plan/plan.h>

/*
 * What an interrupted transfer left, as beginnings of larger files: by size, so that the largest
 * one that may be the beginning of a file is found at once, however many a peer lists.
 */
struct sb_partial {
	struct sb_have *v; /* by size, only those worth going on with */
	size_t n;
};
void sb_partial_free(struct sb_partial *p);
SB_CLEANUP_VALUE(sb_partial, sb_partial_free)

/* Adds one; sb_partial_sort follows the last. */
int sb_partial_add(struct sb_partial *p, const struct sb_digest *d, uint64_t size,
	struct sb_error *err);
void sb_partial_sort(struct sb_partial *p);
/* Offers in `w` the largest one that is shorter than `size`, if there is one. */
void sb_partial_offer(const struct sb_partial *p, uint64_t size, struct sb_want *w);

#endif
