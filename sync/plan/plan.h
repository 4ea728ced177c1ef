/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_PLAN_H
#define SBSYNC_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <base/str.h>
#include <sync/tree/manifest.h>
#include <sync/wire/proto.h>
#include <sync/tree/diff.h>

/*
 * From a difference to a plan: how each change reaches the receiver with the least to send. Renamed
 * and copied content is found by digest in what the receiver has; a directory that was moved as a
 * whole is one step.
 */
struct sb_have {
	struct sb_digest digest;
	uint64_t size;
};

struct sb_plan {
	struct sb_diff diff;        /* pre-order; changes inside a moved directory are gone */
	struct sb_plan_step *steps; /* one for each change */
	uint64_t n_delete;          /* entries that go, all levels, moves not counted */
	uint64_t n_data;            /* files to send */
	uint64_t data_bytes;
	uint64_t n_move;
	uint64_t n_clone;
};

void sb_plan_free(struct sb_plan *p);
SB_CLEANUP_VALUE(sb_plan, sb_plan_free)

struct sb_plan_opts {
	size_t size;
	const struct sb_have
		*have; /* left in the receiver's stage by an interrupted sync; sorted by digest */
	size_t n_have;
	bool no_reuse; /* send everything (tests, --delta off) */
};
#define SB_PLAN_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_plan_opts) \
	}

/*
 * Takes over `diff` (from the receiver's manifest to the wanted state). `receiver` is what is there
 * now.
 */
int sb_plan_make(struct sb_diff *diff, const struct sb_manifest *receiver,
	const struct sb_plan_opts *opts, struct sb_plan *out, struct sb_error *err);

/*
 * How many changes from `from` make the next piece: at most `max`, never between a DEL and the PUT
 * at its path.
 */
size_t sb_plan_piece_len(const struct sb_plan *p, size_t from, size_t max);

/*
 * The brake: SB_E_BRAKE with an explanation when the plan would empty a tree or delete more than
 * allowed (`max_delete` < 0: the default, half of the tree). `trusted`: the user's own tree says
 * so; a tree of up to 100 entries may lose all but one then, else ten at least.
 */
int sb_plan_check_brake(const struct sb_plan *p, const struct sb_manifest *receiver,
	int64_t max_delete, bool trusted, const char *where, struct sb_error *err);

#endif
