/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_COLDFRAME_H
#define SB_HOST_COLDFRAME_H

#include <base/buf.h>
#include <host/cold/coldkey.h>

/*
 * A frame: some bytes of a stream, compressed by themselves and maybe encrypted, so that each can
 * be fetched, checked and decoded alone (doc/sbcold.5). What identifies it is the SHA-256 of the
 * plain bytes.
 */
#define SB_COLDFRAME_DIGEST 32
#define SB_COLDFRAME_PLAIN_MAX ((size_t)4 << 20)
#define SB_COLDFRAME_STORED_MAX (SB_COLDFRAME_PLAIN_MAX + ((size_t)64 << 10))

int sb_coldframe_digest(const void *data, size_t len, uint8_t out[SB_COLDFRAME_DIGEST],
	struct sb_error *err);

/* Appends the stored form of the bytes to `out`; `key` NULL: in the clear. */
int sb_coldframe_encode(const void *data, size_t len, const struct sb_coldkey *key,
	struct sb_buf *out, struct sb_error *err);

/*
 * `len` stored bytes back into exactly `size` plain ones at `out`. SB_E_CORRUPT for whatever is
 * wrong with them; the caller compares the digest.
 */
int sb_coldframe_decode(const uint8_t *data, size_t len, const struct sb_coldkey *key, uint8_t *out,
	size_t size, struct sb_error *err);

#endif
