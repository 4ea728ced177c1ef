/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SSH_HASH_H
#define SBSYNC_SSH_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * What the known_hosts format needs: fingerprints (SHA-256), hashed host names (HMAC-SHA1) and
 * base64. All of it is about public data; nothing secret goes through here.
 */
#define SB_SSH_SHA1_LEN 20
#define SB_SSH_SHA256_LEN 32

void sb_ssh_hash_sha256(const void *data, size_t len, uint8_t out[SB_SSH_SHA256_LEN]);
void sb_ssh_hash_hmac_sha1(const void *key, size_t key_len, const void *data, size_t len,
	uint8_t out[SB_SSH_SHA1_LEN]);

/* Space for sb_ssh_hash_base64 of `len` bytes. */
#define SB_SSH_BASE64_SIZE(len) (((len) + 2) / 3 * 4 + 1)
/* With padding, NUL-terminated. Returns `out`. */
char *sb_ssh_hash_base64(const uint8_t *in, size_t len, char *out);
/* Strict, padding required. The count written to `out` (`size` bytes of room), or -1. */
ssize_t sb_ssh_hash_unbase64(const char *in, size_t len, uint8_t *out, size_t size);

/* "SHA256:..." as ssh prints it. */
#define SB_SSH_FINGERPRINT_SIZE 64
char *sb_ssh_hash_fingerprint(const uint8_t *blob, size_t len, char out[SB_SSH_FINGERPRINT_SIZE]);

#endif
