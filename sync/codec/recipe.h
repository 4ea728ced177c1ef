/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RECIPE_H
#define SBSYNC_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/buf.h>
#include <sb/cancel.h>
#include <sync/tree/digest.h>

/*
 * A recipe remembers a large file that the other side has, as sums of its blocks, so that we can
 * find the differences of its next version without asking for a signature. Recipes lie in a folder,
 * by the content's digest. Nothing depends on them: a damaged or missing one reads as "not there".
 * They are our own data; no peer has a say in them.
 */
#define SB_RECIPE_MIN_SIZE (1u << 20)

/*
 * Reads the file; SB_E_STATE when its content is not `d` (any more). Saves to `dirfd`, drops the
 * one of `old` (may be NULL).
 */
int sb_recipe_keep(int dirfd, const struct sb_digest *d, int fd, uint64_t size,
	const struct sb_digest *old, const struct sb_cancel *cancel, struct sb_error *err);
bool sb_recipe_has(int dirfd, const struct sb_digest *d);

/*
 * A delta in librsync's format from the content `base` to what `fd` holds (`size` bytes), appended
 * to `out`. SB_E_NOTFOUND without a recipe, SB_E_LIMIT when it would be longer than `max`. Finds
 * blocks that follow each other by one hash each, at the speed of memory; where that fails, looks
 * for the next one by the rolling sums of the two halves of a block.
 */
int sb_recipe_delta(int dirfd, const struct sb_digest *base, int fd, uint64_t size, uint64_t max,
	struct sb_buf *out, const struct sb_cancel *cancel, struct sb_error *err);

#endif
