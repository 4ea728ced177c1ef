/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_MANIFEST_PRIV_H
#define SBSYNC_MANIFEST_PRIV_H

#include <sync/tree/arena.h>
#include <sync/tree/manifest.h>

/* What sb_manifest.arena points to. */
struct sb_manifest_priv {
	struct sb_arena *mem;
	/*
	 * Open-addressed index of `leaders` by path (1 + index, 0: free); built by the first
	 * sb_manifest_set_link.
	 */
	uint32_t *slots;
	size_t n_slots;
	/* Covers the hard links; all zero when there are none (sb_manifest_finish). */
	struct sb_digest links;
};

static inline struct sb_manifest_priv *
sb_manifest_priv(const struct sb_manifest *m)
{
	return m->arena;
}

/*
 * The first position in `d` whose name is not below the `len` bytes of `name`; `out_hit` tells
 * whether it is that name.
 */
uint32_t sb_manifest_dir_lower_bound(const struct sb_dir *d, const char *name, size_t len,
	bool *out_hit);

/*
 * Fills `out` with what sb_manifest_put makes of `e` in the place of `old` (NULL: there was
 * nothing). `target` for symlinks only. Negative: out of memory.
 */
int sb_manifest_make_entry(struct sb_manifest *m, const char *leaf, const struct sb_entry *e,
	const char *target, const struct sb_entry *old, struct sb_entry *out);

/*
 * The parts of sb_manifest_finish: the Merkle digests, totals and count; the hard-link groups; the
 * id made of both.
 */
int sb_manifest_finish_digests(struct sb_manifest *m, struct sb_error *err);
int sb_manifest_finish_links(struct sb_manifest *m, struct sb_error *err);
void sb_manifest_finish_id(struct sb_manifest *m);

/* Forgets the index over the leaders; call it after changing them. */
void sb_manifest_drop_index(struct sb_manifest *m);
/* Appends a leader; returns 1 + its index, or 0 when out of memory. */
uint32_t sb_manifest_add_leader(struct sb_manifest *m, const char *path, size_t len);

#endif
