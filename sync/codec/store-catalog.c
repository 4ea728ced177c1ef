/* SPDX-License-Identifier: MIT */
/* The catalog: an open-addressing table over the items; half full at most. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <sync/codec/store-priv.h>

#define TABLE_MIN 1024u

void
sb_store_catalog_free(struct sb_store_catalog *c)
{
	free(c->blocks);
	free(c->items);
	free(c->table);
	memset(c, 0, sizeof *c);
}

/* Digests are evenly spread; their first bytes are hash enough. */
static size_t
slot_of(const struct sb_store_catalog *c, const struct sb_digest *d)
{
	uint64_t h;

	memcpy(&h, d->b, sizeof h);
	return (size_t)h & c->table_mask;
}

struct sb_store_item *
sb_store_catalog_find(const struct sb_store_catalog *c, const struct sb_digest *d)
{
	if (!c->table)
		return NULL;
	for (size_t i = slot_of(c, d); c->table[i]; i = (i + 1) & c->table_mask) {
		struct sb_store_item *it = &c->items[c->table[i] - 1];

		if (sb_digest_eq(&it->digest, d))
			return it;
	}
	return NULL;
}

/* A later item of the same digest replaces the earlier one. */
static void
insert(struct sb_store_catalog *c, uint32_t item)
{
	size_t i = slot_of(c, &c->items[item].digest);

	while (c->table[i] &&
		!sb_digest_eq(&c->items[c->table[i] - 1].digest, &c->items[item].digest))
		i = (i + 1) & c->table_mask;
	c->table[i] = item + 1;
}

/* Fills the table from the items; it must be large enough. */
static void
refill(struct sb_store_catalog *c)
{
	memset(c->table, 0, (c->table_mask + 1) * sizeof *c->table);
	for (size_t i = 0; i < c->n_items; i++)
		insert(c, (uint32_t)i);
}

int
sb_store_catalog_rehash(struct sb_store_catalog *c, struct sb_error *err)
{
	size_t n = TABLE_MIN;
	uint32_t *table;

	while (n < 2 * (c->n_items + 1))
		n *= 2;
	table = malloc(n * sizeof *table);
	if (!table)
		return sb_fail(err, SB_E_NOMEM, "store catalog: out of memory");
	free(c->table);
	c->table = table;
	c->table_mask = n - 1;
	refill(c);
	return 0;
}

static int
grow(void **v, size_t *cap, size_t n, size_t elem, struct sb_error *err)
{
	size_t want = *cap ? 2 * *cap : 64;
	void *p;

	if (n < *cap)
		return 0;
	if (n >= UINT32_MAX / 2)
		return sb_fail(err, SB_E_LIMIT, "store catalog: too many contents");
	p = reallocarray(*v, want, elem);
	if (!p)
		return sb_fail(err, SB_E_NOMEM, "store catalog: out of memory");
	*v = p;
	*cap = want;
	return 0;
}

int
sb_store_catalog_add_block(struct sb_store_catalog *c, const struct sb_store_block *f,
	uint32_t *out, struct sb_error *err)
{
	int r = grow((void **)&c->blocks, &c->blocks_cap, c->n_blocks, sizeof *c->blocks, err);

	if (r < 0)
		return r;
	c->blocks[c->n_blocks] = *f;
	c->blocks[c->n_blocks].first_item = (uint32_t)c->n_items;
	c->blocks[c->n_blocks].n_items = 0;
	*out = (uint32_t)c->n_blocks++;
	return 0;
}

int
sb_store_catalog_add_item(struct sb_store_catalog *c, const struct sb_digest *d, uint32_t off,
	uint32_t len, struct sb_error *err)
{
	int r = grow((void **)&c->items, &c->items_cap, c->n_items, sizeof *c->items, err);

	if (r >= 0 && (!c->table || 2 * (c->n_items + 1) > c->table_mask))
		r = sb_store_catalog_rehash(c, err);
	if (r < 0)
		return r;
	c->items[c->n_items] = (struct sb_store_item){ .digest = *d,
		.block = (uint32_t)c->n_blocks - 1,
		.off = off,
		.len = len };
	insert(c, (uint32_t)c->n_items++);
	c->blocks[c->n_blocks - 1].n_items++;
	return 0;
}

void
sb_store_catalog_drop_segment(struct sb_store_catalog *c, uint32_t segment)
{
	size_t n_blocks = 0, n_items = 0;

	for (size_t i = 0; i < c->n_blocks; i++) {
		struct sb_store_block f = c->blocks[i];

		if (f.segment == segment)
			continue;
		for (uint32_t k = 0; k < f.n_items; k++) {
			c->items[n_items + k] = c->items[f.first_item + k];
			c->items[n_items + k].block = (uint32_t)n_blocks;
		}
		f.first_item = (uint32_t)n_items;
		n_items += f.n_items;
		c->blocks[n_blocks++] = f;
	}
	c->n_blocks = n_blocks;
	c->n_items = n_items;
	if (c->table)
		refill(c);
}

void
sb_store_catalog_truncate(struct sb_store_catalog *c, size_t n_blocks)
{
	if (n_blocks >= c->n_blocks)
		return;
	c->n_items = c->blocks[n_blocks].first_item;
	c->n_blocks = n_blocks;
	if (c->table)
		refill(c);
}
