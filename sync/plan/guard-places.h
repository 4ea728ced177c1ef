/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_GUARD_PLACES_H
#define SBSYNC_GUARD_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#include <base/cleanup.h>
#include <sync/plan/reconcile.h>
#include <sync/tree/diff.h>

/* Where git works in a tree, before and after a plan: found for the guard (guard-tree.h). */
enum {
	SB_PLACE_GIT = 1 << 0,   /* a git directory: named .git, or it looks like one */
	SB_PLACE_HERE = 1 << 1,  /* it is one in the old tree already */
	SB_PLACE_HELD = 1 << 2,  /* `by` leads here: it may not vanish before that */
	SB_PLACE_WHOLE = 1 << 3, /* likewise; and it is obeyed itself, with all beneath */
};

struct sb_guard_place {
	char *path;
	char *by; /* from where git comes here; NULL: from several places */
	unsigned what;
	signed char tainted; /* the guard's: 0 not known, 1 yes, -1 no */
};

struct sb_guard_places {
	struct sb_guard_place *v; /* sorted by strcmp */
	size_t n, cap;
};
void sb_guard_places_free(struct sb_guard_places *p);
SB_CLEANUP_VALUE(sb_guard_places, sb_guard_places_free)

int sb_guard_places_find(const struct sb_manifest *local, const struct sb_diff *d,
	const struct sb_guard_files *files, struct sb_guard_places *out, struct sb_error *err);

/* The place of exactly these `len` bytes, or NULL. */
struct sb_guard_place *sb_guard_places_at(const struct sb_guard_places *p, const char *path,
	size_t len);
/* The places strictly beneath `path`: the first of them, and how many there are. */
const struct sb_guard_place *sb_guard_places_beneath(const struct sb_guard_places *p,
	const char *path, size_t *out_n);

#endif
