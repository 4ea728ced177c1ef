/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_STRMAP_H
#define SB_BASE_STRMAP_H

#include <stdbool.h>
#include <stddef.h>

#include <base/cleanup.h>
#include <sb/error.h>

/* A small map from string to string that keeps insertion order. Zero-initialise. */
struct sb_strmap {
	struct sb_strpair {
		char *key;
		char *value;
	} * v;
	size_t n;
	size_t cap;
};

int sb_strmap_set(struct sb_strmap *m, const char *key, const char *value, struct sb_error *err);
const char *sb_strmap_get(const struct sb_strmap *m, const char *key);
bool sb_strmap_del(struct sb_strmap *m, const char *key);
void sb_strmap_free(struct sb_strmap *m);
SB_CLEANUP_VALUE(sb_strmap, sb_strmap_free)

#endif
