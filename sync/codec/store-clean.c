/* SPDX-License-Identifier: MIT */
/*
 * The cap. Whole segments go, oldest first. If the caller says which contents are wanted,
 * a segment with much that is not goes before older ones, and what is wanted of it moves
 * to the end of the store; so does a segment that is mostly not wanted, cap or not.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <sync/codec/store-priv.h>

/* Below this it is not worth while to look for what is not wanted. */
#define CLEAN_FROM (4u << 20)
/* The last segment is being filled; it is cleaned when it has this much. */
#define LAST_FROM (1u << 20)
/*
 * Segments the store may have after cleaning; more are possible when the cap was changed.
 */
#define SEGMENTS_KEPT 192u

struct store_wanted {
	bool (*live)(const struct sb_digest *d, void *arg);
	void *arg;
};

/* Raw bytes of the block that are wanted. An item another one replaced is not. */
static uint64_t
block_wanted(const struct sb_store *s, const struct sb_store_block *f, const struct store_wanted *w)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < f->n_items; i++) {
		const struct sb_store_item *it = &s->cat.items[f->first_item + i];

		if (w->live(&it->digest, w->arg) &&
			sb_store_catalog_find(&s->cat, &it->digest) == it)
			sum += it->len;
	}
	return sum;
}

/* The share of each segment that is wanted, 0 to 1, by position. */
static double *
segment_shares(const struct sb_store *s, const struct store_wanted *w)
{
	double *share = calloc(s->n_segments + 1, sizeof *share);

	for (size_t i = 0; i < s->cat.n_blocks && share; i++) {
		const struct sb_store_block *f = &s->cat.blocks[i];
		double part = f->raw_len ? (double)block_wanted(s, f, w) / f->raw_len : 0;

		for (size_t k = 0; k < s->n_segments; k++)
			if (s->segments[k].id == f->segment)
				share[k] += part * ((double)f->header_len + f->packed_len) /
					((double)s->segments[k].size + 1);
	}
	return share;
}

/* ---- moving ---- */

/* Writes the block once more, as it is. */
static int
copy_block(struct sb_store *s, uint32_t number, struct sb_error *err)
{
	struct sb_store_block f = s->cat.blocks[number];
	size_t len = (size_t)f.header_len + f.packed_len;
	sb_autofree uint8_t *bytes = malloc(len);
	uint32_t first = f.first_item, copy;
	int r;

	if (!bytes)
		return sb_fail(err, SB_E_NOMEM, "store: out of memory");
	r = sb_store_block_read(s, &f, true, bytes, err);
	if (r >= 0)
		r = sb_store_segment_append(s, bytes, len, &f.segment, &f.at, err);
	if (r >= 0)
		r = sb_store_catalog_add_block(&s->cat, &f, &copy, err);
	for (uint32_t i = 0; i < f.n_items && r >= 0; i++) {
		struct sb_store_item it = s->cat.items[first + i];

		r = sb_store_catalog_add_item(&s->cat, &it.digest, it.off, it.len, err);
	}
	return r;
}

/* Takes the wanted contents out of a block and adds them again. */
static int
repack_block(struct sb_store *s, uint32_t number, const struct store_wanted *w,
	struct sb_error *err)
{
	uint32_t n = s->cat.blocks[number].n_items, first = s->cat.blocks[number].first_item;
	int r = 0;

	for (uint32_t i = 0; i < n && r >= 0; i++) {
		struct sb_store_item it = s->cat.items[first + i];
		const uint8_t *raw;

		if (!w->live(&it.digest, w->arg) ||
			sb_store_catalog_find(&s->cat, &it.digest) != &s->cat.items[first + i])
			continue;
		raw = sb_store_decode(s, number, NULL);
		if (!raw)
			return 0; /* damaged: nothing to save */
		r = sb_store_add_locked(s, &it.digest, raw + it.off, it.len, err);
	}
	return r;
}

static int
move_wanted(struct sb_store *s, uint32_t segment, const struct store_wanted *w,
	struct sb_error *err)
{
	size_t n = s->cat.n_blocks;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct sb_store_block *f = &s->cat.blocks[i];
		uint64_t keep;

		if (f->segment != segment)
			continue;
		keep = block_wanted(s, f, w);
		if (keep && keep >= f->raw_len - f->raw_len / 8)
			r = copy_block(s, (uint32_t)i, err);
		else if (keep)
			r = repack_block(s, (uint32_t)i, w, err);
	}
	return r;
}

/* ---- choosing ---- */

/*
 * The segment of which the smallest share is wanted; the last one only when it is large.
 */
static size_t
least_wanted(const struct sb_store *s, const double *share)
{
	size_t n = s->n_segments, best = 0;

	if (s->segments[n - 1].size < LAST_FROM && n > 1)
		n--;
	for (size_t i = 1; i < n; i++)
		if (share[i] < share[best])
			best = i;
	return best;
}

static bool
over_cap(const struct sb_store *s)
{
	return s->bytes > s->opts.cap || s->n_segments > SEGMENTS_KEPT;
}

/*
 * One segment: its wanted contents to the end of the store, then away with it. 1 when
 * there was one worth while.
 */
static int
clean_one(struct sb_store *s, const struct store_wanted *w, struct sb_error *err)
{
	sb_autofree double *share = segment_shares(s, w);
	size_t i;
	uint32_t id;
	int r = 0;

	if (!share)
		return sb_fail(err, SB_E_NOMEM, "store: out of memory");
	i = least_wanted(s, share);
	if (share[i] >= (over_cap(s) ? 0.75 : 0.5))
		return 0;
	id = s->segments[i].id;
	if (i == s->n_segments - 1)
		r = sb_store_segment_begin(s, err);
	if (r >= 0)
		r = move_wanted(s, id, w, err);
	if (r >= 0)
		r = sb_store_write_pending(s, err);
	for (i = 0; i < s->n_segments && r >= 0; i++) {
		if (s->segments[i].id != id)
			continue;
		sb_store_segment_drop(s, i);
		return 1;
	}
	return r;
}

int
sb_store_clean(struct sb_store *s, bool (*live)(const struct sb_digest *d, void *arg), void *arg,
	struct sb_error *err)
{
	struct store_wanted w = { live, arg };
	int r = live != NULL;

	if (s->cleaning)
		return 0;
	s->cleaning = true;
	for (size_t turns = s->n_segments; turns && r > 0; turns--)
		r = over_cap(s) || s->bytes >= CLEAN_FROM ? clean_one(s, &w, err) : 0;
	while (over_cap(s) && s->n_segments)
		sb_store_segment_drop(s, 0);
	s->cleaning = false;
	return r < 0 ? r : 0;
}
