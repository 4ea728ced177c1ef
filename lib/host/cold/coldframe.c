/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/cold/coldframe.h>

#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <sodium.h>
#include <zstd.h>

#define LEVEL 3
#define HEAD crypto_secretstream_xchacha20poly1305_HEADERBYTES
#define TAIL crypto_secretstream_xchacha20poly1305_ABYTES
#define FINAL crypto_secretstream_xchacha20poly1305_TAG_FINAL

int
sb_coldframe_digest(const void *data, size_t len, uint8_t out[SB_COLDFRAME_DIGEST],
	struct sb_error *err)
{
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, data ? data : "", len, out) != 0)
		return sb_fail(err, SB_E_SYS, "SHA-256 failed");
	return 0;
}

static int
encrypt(const uint8_t *data, size_t len, const struct sb_coldkey *key, struct sb_buf *out,
	struct sb_error *err)
{
	crypto_secretstream_xchacha20poly1305_state st;
	uint8_t *to = sb_buf_reserve(out, HEAD + len + TAIL);
	int r = 0;

	if (!to)
		return sb_buf_check(out, "frame", err);
	if (crypto_secretstream_xchacha20poly1305_init_push(&st, to, key->key) != 0 ||
		crypto_secretstream_xchacha20poly1305_push(&st, to + HEAD, NULL, data, len, NULL, 0,
			FINAL) != 0)
		r = sb_fail(err, SB_E_SYS, "encryption failed");
	else
		sb_buf_grow(out, HEAD + len + TAIL);
	explicit_bzero(&st, sizeof st);
	return r;
}

int
sb_coldframe_encode(const void *data, size_t len, const struct sb_coldkey *key, struct sb_buf *out,
	struct sb_error *err)
{
	size_t bound = ZSTD_compressBound(len), n;
	sb_auto(sb_buf) struct sb_buf packed;
	struct sb_buf *to = key ? &packed : out;
	uint8_t *p;

	sb_buf_init(&packed, bound + 1);
	if (len > SB_COLDFRAME_PLAIN_MAX)
		return sb_fail(err, SB_E_LIMIT, "a frame of %zu bytes", len);
	p = sb_buf_reserve(to, bound);
	if (!p)
		return sb_buf_check(to, "frame", err);
	n = ZSTD_compress(p, bound, data, len, LEVEL);
	if (ZSTD_isError(n))
		return sb_fail(err, SB_E_NOMEM, "compress a frame: %s", ZSTD_getErrorName(n));
	sb_buf_grow(to, n);
	return key ? encrypt(packed.data, packed.len, key, out, err) : 0;
}

static int
unpack(const uint8_t *data, size_t len, uint8_t *out, size_t size, struct sb_error *err)
{
	unsigned long long says = ZSTD_getFrameContentSize(data, len);
	size_t n;

	/* One frame and nothing behind it, which says how much it holds. */
	if (says != size || ZSTD_findFrameCompressedSize(data, len) != len)
		return sb_fail(err, SB_E_CORRUPT, "a frame is not of %zu bytes", size);
	n = ZSTD_decompress(out, size, data, len);
	if (ZSTD_isError(n) || n != size)
		return sb_fail(err, SB_E_CORRUPT, "a frame does not unpack: %s",
			ZSTD_isError(n) ? ZSTD_getErrorName(n) : "it is short");
	return 0;
}

int
sb_coldframe_decode(const uint8_t *data, size_t len, const struct sb_coldkey *key, uint8_t *out,
	size_t size, struct sb_error *err)
{
	crypto_secretstream_xchacha20poly1305_state st;
	sb_autofree uint8_t *plain = NULL;
	unsigned char tag = 0;
	int bad;

	if (!key)
		return unpack(data, len, out, size, err);
	if (len < HEAD + TAIL)
		return sb_fail(err, SB_E_CORRUPT, "an encrypted frame of %zu bytes", len);
	plain = malloc(len);
	if (!plain)
		return sb_fail(err, SB_E_NOMEM, "frame");
	bad = crypto_secretstream_xchacha20poly1305_init_pull(&st, data, key->key) != 0 ||
		crypto_secretstream_xchacha20poly1305_pull(&st, plain, NULL, &tag, data + HEAD,
			len - HEAD, NULL, 0) != 0;
	explicit_bzero(&st, sizeof st);
	if (bad || tag != FINAL)
		return sb_fail(err, SB_E_CORRUPT, "a frame was not encrypted with key %s", key->id);
	return unpack(plain, len - HEAD - TAIL, out, size, err);
}
