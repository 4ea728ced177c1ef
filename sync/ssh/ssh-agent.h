/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SSH_AGENT_H
#define SBSYNC_SSH_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <sb/cancel.h>
#include <sb/error.h>

/*
 * A client of ssh-agent. libssh2 has one, but it blocks without limit while the agent asks its user
 * for a confirmation; this one obeys deadline and cancel.
 */
struct sb_ssh_agent_key {
	uint8_t *blob;
	size_t blob_len;
	char *comment; /* escaped */
};

struct sb_ssh_agent {
	int fd;
	const struct sb_cancel *cancel;
	struct sb_ssh_agent_key *keys;
	size_t n;
};

/* Connects to the socket and lists the keys. SB_E_NOTFOUND: nobody listens there. */
int sb_ssh_agent_open(struct sb_ssh_agent *a, const char *path, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err);
void sb_ssh_agent_close(struct sb_ssh_agent *a);
SB_CLEANUP_VALUE(sb_ssh_agent, sb_ssh_agent_close)

/*
 * Signs; `out` (initialised by the caller) gets the bare signature without its algorithm name.
 * `flags`: 0, or 2 and 4 for RSA with SHA-256 and SHA-512.
 */
int sb_ssh_agent_sign(struct sb_ssh_agent *a, const struct sb_ssh_agent_key *key, const void *data,
	size_t len, uint32_t flags, sb_deadline d, struct sb_buf *out, struct sb_error *err);

#endif
