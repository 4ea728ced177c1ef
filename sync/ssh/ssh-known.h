/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SSH_KNOWN_H
#define SBSYNC_SSH_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/error.h>

/*
 * The lines of known_hosts files that are about one host: plain names, patterns (* ? !),
 * [name]:port, hashed names, @revoked and @cert-authority. This code does not verify certificates
 * of hosts: `has_ca` says that the ssh program should. It skips lines that it cannot read, as ssh
 * does.
 */
struct sb_ssh_known_key {
	char *file;
	size_t line;
	char *type; /* "ssh-ed25519" */
	uint8_t *blob;
	size_t blob_len;
	bool revoked;
	bool bare; /* found under the name without the port, while the port is not 22 */
};

struct sb_ssh_known {
	struct sb_ssh_known_key *keys;
	size_t n;
	size_t cap;
	bool has_ca;
};

enum sb_ssh_known_answer {
	SB_SSH_KNOWN_MATCH,
	SB_SSH_KNOWN_NEW,     /* nothing is known about this host */
	SB_SSH_KNOWN_CHANGED, /* other keys are known, this one is not */
	SB_SSH_KNOWN_REVOKED,
};

/*
 * Reads the files (missing ones are empty). Fails on memory, and for a file that is there but
 * cannot be read.
 */
int sb_ssh_known_load(struct sb_ssh_known *k, const char *const *files, size_t n, const char *host,
	int port, struct sb_error *err);
/* Adds the lines of a text that is called `file` to `k`, which is zeroed before the first. */
int sb_ssh_known_parse(struct sb_ssh_known *k, const char *text, size_t len, const char *file,
	const char *host, int port, struct sb_error *err);
void sb_ssh_known_free(struct sb_ssh_known *k);
SB_CLEANUP_VALUE(sb_ssh_known, sb_ssh_known_free)

/* `out_old` (may be NULL) becomes the line that decided, or NULL for NEW. Borrowed. */
enum sb_ssh_known_answer sb_ssh_known_check(const struct sb_ssh_known *k, const uint8_t *blob,
	size_t blob_len, const struct sb_ssh_known_key **out_old);

/* Is a key of this type known for the host? */
bool sb_ssh_known_has(const struct sb_ssh_known *k, const char *type);

/* The name a host has in known_hosts: "host" or "[host]:port". Returns `out`. */
char *sb_ssh_known_name(const char *host, int port, char *out, size_t size);

/*
 * Appends a line to `file` (made with mode 0600 in a directory made with 0700 when missing), the
 * name hashed when `hashed`.
 */
int sb_ssh_known_add(const char *file, const char *host, int port, bool hashed, const uint8_t *blob,
	size_t blob_len, struct sb_error *err);

#endif
