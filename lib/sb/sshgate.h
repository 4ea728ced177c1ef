/* SPDX-License-Identifier: MIT */
#ifndef SB_SSHGATE_H
#define SB_SSHGATE_H

#include <sb/rpc-daemon.h>

/*
 * SSH into the sessions of a daemon (sb/rpc-daemon.h): `ssh TOKEN@host` and `ssh SESSION@host`. A
 * process for each connection, bin/sb-ssh, speaks SSH; it can reach neither files nor processes of
 * this machine. What the gateway serves is in sbhostd(8).
 */
struct sb_sshgate;
struct sb_access;

struct sb_sshgate_opts {
	size_t size;
	const char *listen;          /* HOST:PORT */
	const char *host_key;        /* a private key in a PEM file; NULL: one that is made and kept
					in the state directory */
	const char *authorized_keys; /* a file of public keys that may enter every session; NULL */
	const char *session_keys;    /* a directory with such a file for each session, of its id's
					name; NULL */
	unsigned max_connections;
	unsigned max_each;     /* of them, for one session */
	unsigned max_channels; /* of one connection at a time */
	int64_t login_ms;      /* from connecting to being logged in */
	int64_t idle_s;        /* a sign of life is asked for after this; twice without: over */
	struct sb_log log;
	/* Others who hand out tokens, a list ended by NULL that outlives the gateway; or NULL. */
	const struct sb_access *const *access;
};
#define SB_SSHGATE_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_sshgate_opts), .max_connections = 256, .max_each = 64, \
		.max_channels = 64, .login_ms = 30000, .idle_s = 60 \
	}

/* The mistakes in them that can be seen without starting. */
SB_API void sb_sshgate_check(const struct sb_sshgate_opts *o, const struct sb_host_opts *host,
	void (*found)(const char *what, void *arg), void *arg);
/* The daemon is started and outlives it. SB_E_UNSUPPORTED: this build has no sb-ssh. */
SB_API struct sb_sshgate *sb_sshgate_start(struct sb_rpc_daemon *d, const struct sb_sshgate_opts *o,
	struct sb_error *err);
/* Before the daemon's own stop: ends all connections. NULL is allowed. */
SB_API void sb_sshgate_free(struct sb_sshgate *g);

#endif
