/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/tree/seal.h>

#include <string.h>

#include <xxhash.h>

#define MAGIC_LEN 4u
#define SUM_LEN 8u
#define BODY_MIN 2u

int
sb_seal_open(const uint8_t *data, size_t len, const char *magic, uint64_t max, const char *what,
	struct sb_cursor *body, struct sb_error *err)
{
	if (len > max)
		return sb_fail(err, SB_E_LIMIT, "%s of %zu bytes, at most %llu are allowed", what,
			len, (unsigned long long)max);
	if (len < MAGIC_LEN + BODY_MIN + SUM_LEN || memcmp(data, magic, MAGIC_LEN) != 0)
		return sb_fail(err, SB_E_CORRUPT, "not a %s", what);
	sb_cursor_init(body, data + MAGIC_LEN, len - MAGIC_LEN - SUM_LEN);
	return 0;
}

int
sb_seal_check(const uint8_t *data, size_t len, const char *what, struct sb_error *err)
{
	struct sb_cursor c;

	sb_cursor_init(&c, data + len - SUM_LEN, SUM_LEN);
	if (sb_cursor_u64(&c) != XXH3_64bits(data, len - SUM_LEN))
		return sb_fail(err, SB_E_CORRUPT, "%s is damaged: wrong checksum", what);
	return 0;
}
