/* SPDX-License-Identifier: MIT */
#ifndef SB_DAYTONA_H
#define SB_DAYTONA_H

#include <sb/rpc-daemon.h>

/*
 * The Daytona API over the host of a daemon (sb/rpc-daemon.h): control plane, toolboxes and events
 * on one address, which DAYTONA_API_URL names. What cannot be served is in sbhostd(8).
 */
struct sb_daytona;

struct sb_daytona_opts {
	size_t size;
	const char *listen; /* HOST:PORT, unix:PATH */
	/* Each line is an API key, or NAME:KEY for the log; '#' begins a comment. */
	const char *key_file;
	/* HOST[:PORT] of an SSH gateway that asks sb_daytona_access, as callers reach it; NULL:
	 * there is none, and no access tokens are made. */
	const char *ssh_gateway;
};
#define SB_DAYTONA_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_daytona_opts) \
	}

/* The mistakes in them that can be seen without starting. */
SB_API void sb_daytona_check(const struct sb_daytona_opts *opts,
	const struct sb_rpc_server_opts *server, void (*found)(const char *what, void *arg),
	void *arg);
/*
 * Serves with the limits and TLS files of `server`. The daemon is started and outlives it. Errors
 * name the key file, or are those of listening.
 */
SB_API struct sb_daytona *sb_daytona_start(struct sb_rpc_daemon *d,
	const struct sb_daytona_opts *opts, const struct sb_rpc_server_opts *server,
	struct sb_error *err);
/* What its access tokens open, until the free: for a gateway (lib/compat/keep/access.h). */
struct sb_access;
SB_API const struct sb_access *sb_daytona_access(struct sb_daytona *d);
/* Before the daemon's own stop: takes no more calls, ends streams. Sandboxes stay. */
SB_API void sb_daytona_stop(struct sb_daytona *d, int64_t grace_ms, const struct sb_cancel *hurry);
SB_API void sb_daytona_free(struct sb_daytona *d);

#endif
