/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_STAGE_H
#define SBSYNC_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/cancel.h>
#include <sync/tree/digest.h>
#include <sync/tree/stage-names.h>

/*
 * The stage directory of a root: where everything lands before it becomes visible. The next
 * transfer finds what an interrupted one left in it by content, so that nobody sends it twice.
 */
struct sb_leftover {
	struct sb_digest digest;
	uint64_t size;
	char *path; /* beneath the stage directory */
};

struct sb_stage {
	int fd;                   /* the stage directory */
	int newfd;                /* "new" in it; -1 until sb_stage_begin */
	struct sb_leftover *left; /* sorted by digest */
	size_t n_left;
};

/* What an interrupted transfer left; an absent stage gives none. Only looks. */
int sb_stage_find(int rootfd, const struct sb_cancel *cancel, struct sb_stage **out,
	struct sb_error *err);
/* Makes the stage ready for a transfer: directories, and leftovers moved aside to "old". */
int sb_stage_begin(int rootfd, struct sb_stage *s, struct sb_error *err);
void sb_stage_free(struct sb_stage *s);
SB_CLEANUP_PTR(sb_stage, sb_stage_free)

/* The staged name of number `n`, for example "t12"; `buf` holds 16 bytes. Returns `buf`. */
char *sb_stage_name(char kind, uint32_t n, char *buf);

struct sb_leftover *sb_stage_lookup(struct sb_stage *s, const struct sb_digest *d);

#endif
