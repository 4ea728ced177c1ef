/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_STR_H
#define SB_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/error.h>

/* A list of owned strings; `v` is NULL or NULL-terminated. Zero-initialise. */
struct sb_strlist {
	char **v;
	size_t n;
	size_t cap;
};

int sb_strlist_add(struct sb_strlist *l, const char *s, struct sb_error *err);
int sb_strlist_addf(struct sb_strlist *l, struct sb_error *err, const char *fmt, ...)
	SB_PRINTF(3, 4);
void sb_strlist_free(struct sb_strlist *l);
SB_CLEANUP_VALUE(sb_strlist, sb_strlist_free)

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

/* printf into a new string, or NULL. */
char *sb_str_printf(const char *fmt, ...) SB_PRINTF(1, 2);
/* Strict decimal: the whole text, no sign but one '-', in [min, max]. */
bool sb_str_to_i64(const char *s, int64_t min, int64_t max, int64_t *out);
/* Lower-case hex of `len` bytes into `out` (2*len+1), and back (exactly 2*len digits). */
char *sb_str_hex(const uint8_t *in, size_t len, char *out);
bool sb_str_unhex(const char *hex, uint8_t *out, size_t len);
bool sb_str_starts(const char *s, const char *prefix);
bool sb_str_ends(const char *s, const char *suffix);

/* Fills `out` with `len` random bytes from the kernel. */
int sb_random(void *out, size_t len, struct sb_error *err);

#endif
