/* SPDX-License-Identifier: MIT */
#ifndef SB_FLEET_TABLE_H
#define SB_FLEET_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <sb/error.h>

/* The sessions of a view by their id, in as little memory as that takes. Not thread-safe. */
struct sb_fleet_slot {
	int64_t rev;
	uint32_t node, to; /* numbers that the view gives */
	uint32_t tenant;
	uint32_t round; /* of listing, in which it was seen last */
	uint8_t state;
	char id[];
};

struct sb_fleet_table {
	struct sb_fleet_slot **v;
	size_t cap, n;
	uint64_t seed;
	size_t bytes; /* of the slots */
};

/* The seed keeps callers from choosing ids that fall together. */
int sb_fleet_table_init(struct sb_fleet_table *t, struct sb_error *err);
void sb_fleet_table_free(struct sb_fleet_table *t);

struct sb_fleet_slot *sb_fleet_table_find(const struct sb_fleet_table *t, const char *id);
/* The slot of that id; a new one is all zero. NULL: out of memory. */
struct sb_fleet_slot *sb_fleet_table_put(struct sb_fleet_table *t, const char *id);
/* Frees the slot. */
void sb_fleet_table_remove(struct sb_fleet_table *t, struct sb_fleet_slot *s);

#endif
