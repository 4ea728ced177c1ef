/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SSH_KEY_H
#define SBSYNC_SSH_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/error.h>

/* What can be told about a private key file without its passphrase. */
struct sb_ssh_key {
	bool encrypted;
	char type[64]; /* "ssh-ed25519", or "" when it cannot be told */
	uint8_t *blob; /* the public half, NULL when it cannot be told */
	size_t blob_len;
};

/*
 * SB_E_NOTFOUND: there is no such file. SB_E_DENIED: others may read it (ssh does not use such a
 * key either), or we may not. SB_E_INVAL: not a private key.
 */
int sb_ssh_key_inspect(const char *path, struct sb_ssh_key *out, struct sb_error *err);
void sb_ssh_key_free(struct sb_ssh_key *k);
SB_CLEANUP_VALUE(sb_ssh_key, sb_ssh_key_free)

/*
 * Fills type and blob of `k` from the file PATH.pub, if it can be read. All that there is for a key
 * in an agent or a token, and for keys of the old format.
 */
void sb_ssh_key_read_public(const char *path, struct sb_ssh_key *k);

/* The type name a public key blob begins with, escaped. Returns `out`. */
char *sb_ssh_key_type(const uint8_t *blob, size_t len, char *out, size_t size);

/*
 * Keys only the user's ssh program can use with this libssh2: security keys, certificates, RSA
 * before libssh2 1.11.
 */
bool sb_ssh_key_needs_program(const char *type);

#endif
