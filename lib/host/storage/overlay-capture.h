/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_OVERLAY_CAPTURE_H
#define SB_HOST_OVERLAY_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/host.h>

/*
 * Copies of an upper layer that processes hold and cannot be taken from them. The caller sees to it
 * that nothing writes meanwhile. Copied are names, types, contents, owners, modes, times,
 * attributes and the marks of overlayfs; what several names of the upper share, they share in the
 * copy.
 */
struct sb_overlay_capture; /* what the upper looked like when it was copied last */
void sb_overlay_capture_free(struct sb_overlay_capture *c);

struct sb_overlay_capture_stats {
	size_t entries; /* of the upper */
	size_t changed; /* of these copied, or gone */
	uint64_t bytes; /* copied */
};

/*
 * Copies everything in `upper` into the empty directory `to`: a layer for the same place. With
 * `before`, only what differs from then: a layer on top of that copy. 1: that cannot be told by a
 * layer (a directory with something below it moved), `to` holds half of it; take everything
 * instead. `*out` is what to give next time, NULL when the upper is too large to remember.
 */
int sb_overlay_capture_take(int upper, int to, const struct sb_overlay_capture *before,
	struct sb_overlay_capture **out, struct sb_overlay_capture_stats *stats,
	struct sb_error *err);
/* Whether anything differs from `before`: 1, 0, or an error. Nothing need stand still. */
int sb_overlay_capture_differs(int upper, const struct sb_overlay_capture *before,
	struct sb_error *err);

#endif
