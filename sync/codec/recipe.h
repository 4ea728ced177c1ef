/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RECIPE_H
#define SBSYNC_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/buf.h>
#include <sb/cancel.h>
#include <sync/tree/digest.h>

/*
 * A recipe: what is remembered of a large file that the other side has, so that its next version
 * can be told apart without asking for a signature. Sums of its blocks; kept in a folder by the
 * content's digest; never needed (what is damaged or missing reads as "not there"). Our own data:
 * no peer has a say in it.
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
 * to `out`. SB_E_NOTFOUND without a recipe, SB_E_LIMIT when it would be longer than `max`. Blocks
 * that follow each other are told by one hash each, at the speed of memory; where that fails the
 * rolling sums of the two halves of a block look for the next one.
 */
int sb_recipe_delta(int dirfd, const struct sb_digest *base, int fd, uint64_t size, uint64_t max,
	struct sb_buf *out, const struct sb_cancel *cancel, struct sb_error *err);

#endif
