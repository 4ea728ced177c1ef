/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_DIGEST_H
#define SBSYNC_DIGEST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <xxhash.h>

/* XXH3-128 in its canonical (big-endian) form. All zero means "not known". */
struct sb_digest {
	uint8_t b[16];
};

static inline bool
sb_digest_eq(const struct sb_digest *a, const struct sb_digest *b)
{
	return memcmp(a->b, b->b, sizeof a->b) == 0;
}

static inline bool
sb_digest_known(const struct sb_digest *d)
{
	static const struct sb_digest none;

	return !sb_digest_eq(d, &none);
}

/* The digest of one block of bytes. */
static inline struct sb_digest
sb_digest_of(const void *data, size_t len)
{
	XXH128_canonical_t c;
	struct sb_digest d;

	XXH128_canonicalFromHash(&c, XXH3_128bits(data, len));
	memcpy(d.b, c.digest, sizeof d.b);
	return d;
}

/* Takes the digest out of a running XXH3 state. */
static inline struct sb_digest
sb_digest_final(const XXH3_state_t *st)
{
	XXH128_canonical_t c;
	struct sb_digest d;

	XXH128_canonicalFromHash(&c, XXH3_128bits_digest(st));
	memcpy(d.b, c.digest, sizeof d.b);
	return d;
}

#endif
