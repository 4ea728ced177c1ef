/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_COLDKEY_H
#define SB_HOST_COLDKEY_H

#include <base/cleanup.h>
#include <sb/error.h>

#include <stddef.h>
#include <stdint.h>

/*
 * Keys of archives: 32 bytes each, written as 64 hex digits, one a line; the first one encrypts,
 * all of them decrypt, so a new first line rotates. The id of a key is the BLAKE2b hash of it (8
 * bytes, in hex), which tells nothing about the key.
 */
#define SB_COLDKEY_LEN 32
#define SB_COLDKEY_ID_MAX 17
#define SB_COLDKEY_COUNT_MAX 64

struct sb_coldkey {
	uint8_t key[SB_COLDKEY_LEN];
	char id[SB_COLDKEY_ID_MAX];
};

struct sb_coldkeys {
	struct sb_coldkey *v;
	size_t n; /* 0: archives are not encrypted */
};
void sb_coldkey_free(struct sb_coldkeys *k); /* wipes them */

/* Adds the keys of a text: lines, or commas between them; '#' begins a comment. */
int sb_coldkey_parse(struct sb_coldkeys *k, const char *text, struct sb_error *err);
/* The keys of a file that only its owner may read; NULL for none of these: those of the variable
 * SBHOSTD_COLD_KEYS, else none. */
int sb_coldkey_load(struct sb_coldkeys *k, const char *file, struct sb_error *err);
/* By id; NULL: we do not have it. */
const struct sb_coldkey *sb_coldkey_find(const struct sb_coldkeys *k, const char *id);

#endif
