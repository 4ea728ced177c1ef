/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/ssh/ssh-hash.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 64

/* Both hashes are of one kind: 64-byte blocks into 32-bit words, padded with the bit count. */
typedef void (*block_fn)(uint32_t *state, const uint8_t *block);

static uint32_t
rol(uint32_t v, unsigned n)
{
	return v << n | v >> (32 - n);
}

static uint32_t
ror(uint32_t v, unsigned n)
{
	return v >> n | v << (32 - n);
}

static uint32_t
load_be(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void
sha1_block(uint32_t *h, const uint8_t *block)
{
	uint32_t w[80];
	uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

	for (int i = 0; i < 16; i++)
		w[i] = load_be(block + 4 * i);
	for (int i = 16; i < 80; i++)
		w[i] = rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t f, k, t;

		if (i < 20) {
			f = (b & c) | (~b & d);
			k = 0x5a827999;
		} else if (i < 40) {
			f = b ^ c ^ d;
			k = 0x6ed9eba1;
		} else if (i < 60) {
			f = (b & c) | (b & d) | (c & d);
			k = 0x8f1bbcdc;
		} else {
			f = b ^ c ^ d;
			k = 0xca62c1d6;
		}
		t = rol(a, 5) + f + e + k + w[i];
		e = d;
		d = c;
		c = rol(b, 30);
		b = a;
		a = t;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

static const uint32_t sha256_k[64] = { 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
	0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6,
	0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
	0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585,
	0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
	0xa4506ceb, 0xbef9a3f7, 0xc67178f2 };

static void
sha256_block(uint32_t *h, const uint8_t *block)
{
	uint32_t w[64];
	uint32_t v[8];

	for (int i = 0; i < 16; i++)
		w[i] = load_be(block + 4 * i);
	for (int i = 16; i < 64; i++) {
		uint32_t s0 = ror(w[i - 15], 7) ^ ror(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t s1 = ror(w[i - 2], 17) ^ ror(w[i - 2], 19) ^ w[i - 2] >> 10;

		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
	memcpy(v, h, sizeof v);
	for (int i = 0; i < 64; i++) {
		uint32_t s1 = ror(v[4], 6) ^ ror(v[4], 11) ^ ror(v[4], 25);
		uint32_t ch = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t t1 = v[7] + s1 + ch + sha256_k[i] + w[i];
		uint32_t s0 = ror(v[0], 2) ^ ror(v[0], 13) ^ ror(v[0], 22);
		uint32_t maj = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);

		memmove(v + 1, v, 7 * sizeof v[0]);
		v[4] += t1;
		v[0] = t1 + s0 + maj;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

/*
 * The rest of a message of `total` bytes (its last `len`, behind whole blocks), padding and output.
 */
static void
finish(uint32_t *h, size_t words, block_fn fn, const uint8_t *data, size_t len, uint64_t total,
	uint8_t *out)
{
	uint8_t last[2 * BLOCK] = { 0 };
	size_t blocks;

	for (; len >= BLOCK; len -= BLOCK, data += BLOCK)
		fn(h, data);
	if (len > 0)
		memcpy(last, data, len);
	last[len] = 0x80;
	blocks = len + 9 > BLOCK ? 2 : 1;
	for (int i = 0; i < 8; i++)
		last[blocks * BLOCK - 1 - (size_t)i] = (uint8_t)(total * 8 >> (8 * i));
	for (size_t i = 0; i < blocks; i++)
		fn(h, last + i * BLOCK);
	for (size_t i = 0; i < words; i++)
		for (int b = 0; b < 4; b++)
			out[4 * i + (size_t)b] = (uint8_t)(h[i] >> (24 - 8 * b));
}

static const uint32_t sha1_init[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };

void
sb_ssh_hash_sha256(const void *data, size_t len, uint8_t out[SB_SSH_SHA256_LEN])
{
	uint32_t h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
		0x1f83d9ab, 0x5be0cd19 };

	finish(h, 8, sha256_block, data, len, len, out);
}

/* One half of HMAC: the padded key block, then the data. */
static void
sha1_keyed(const uint8_t *key, size_t key_len, uint8_t pad, const void *data, size_t len,
	uint8_t *out)
{
	uint8_t block[BLOCK];
	uint32_t h[5];

	for (size_t i = 0; i < BLOCK; i++)
		block[i] = (uint8_t)((i < key_len ? key[i] : 0) ^ pad);
	memcpy(h, sha1_init, sizeof h);
	sha1_block(h, block);
	finish(h, 5, sha1_block, data, len, BLOCK + len, out);
}

void
sb_ssh_hash_hmac_sha1(const void *key, size_t key_len, const void *data, size_t len,
	uint8_t out[SB_SSH_SHA1_LEN])
{
	uint8_t short_key[SB_SSH_SHA1_LEN];
	uint8_t inner[SB_SSH_SHA1_LEN];

	if (key_len > BLOCK) {
		uint32_t h[5];

		memcpy(h, sha1_init, sizeof h);
		finish(h, 5, sha1_block, key, key_len, key_len, short_key);
		key = short_key;
		key_len = sizeof short_key;
	}
	sha1_keyed(key, key_len, 0x36, data, len, inner);
	sha1_keyed(key, key_len, 0x5c, inner, sizeof inner, out);
}

static const char base64_digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *
sb_ssh_hash_base64(const uint8_t *in, size_t len, char *out)
{
	char *w = out;

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)in[i] << 16;

		if (n > 1)
			v |= (uint32_t)in[i + 1] << 8;
		if (n > 2)
			v |= in[i + 2];
		*w++ = base64_digits[v >> 18];
		*w++ = base64_digits[v >> 12 & 63];
		*w++ = n > 1 ? base64_digits[v >> 6 & 63] : '=';
		*w++ = n > 2 ? base64_digits[v & 63] : '=';
	}
	*w = '\0';
	return out;
}

static int
base64_value(char c)
{
	const char *at = c ? strchr(base64_digits, c) : NULL;

	return at ? (int)(at - base64_digits) : -1;
}

ssize_t
sb_ssh_hash_unbase64(const char *in, size_t len, uint8_t *out, size_t size)
{
	size_t n = 0;

	if (len % 4 != 0)
		return -1;
	for (size_t i = 0; i < len; i += 4) {
		bool last = i + 4 == len;
		int pad = !last                              ? 0 :
			in[i + 2] == '=' && in[i + 3] == '=' ? 2 :
			in[i + 3] == '='                     ? 1 :
							       0;
		uint32_t v = 0;

		for (int k = 0; k < 4; k++) {
			int d = k >= 4 - pad ? 0 : base64_value(in[i + (size_t)k]);

			if (d < 0)
				return -1;
			v = v << 6 | (uint32_t)d;
		}
		for (int k = 0; k < 3 - pad; k++) {
			if (n == size)
				return -1;
			out[n++] = (uint8_t)(v >> (16 - 8 * k));
		}
	}
	return (ssize_t)n;
}

char *
sb_ssh_hash_fingerprint(const uint8_t *blob, size_t len, char out[SB_SSH_FINGERPRINT_SIZE])
{
	uint8_t sum[SB_SSH_SHA256_LEN];
	char text[SB_SSH_BASE64_SIZE(SB_SSH_SHA256_LEN)];

	sb_ssh_hash_sha256(blob, len, sum);
	(void)sb_ssh_hash_base64(sum, sizeof sum, text);
	text[strcspn(text, "=")] = '\0';
	(void)snprintf(out, SB_SSH_FINGERPRINT_SIZE, "SHA256:%s", text);
	return out;
}
