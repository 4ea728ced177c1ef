/* SPDX-License-Identifier: MIT */
#ifndef SB_E2B_H
#define SB_E2B_H

#include <sb/rpc-daemon.h>

/*
 * The E2B API over the host of a daemon (sb/rpc-daemon.h), control plane and sandboxes on one
 * address: E2B_API_URL and E2B_SANDBOX_URL are both that. What cannot be served is in sbhostd(8).
 */
struct sb_e2b;

/* The mistakes in them that can be seen without starting. */
SB_API void sb_e2b_check(const char *listen, const char *key_file,
	const struct sb_rpc_server_opts *server, void (*found)(const char *what, void *arg),
	void *arg);
/*
 * Serves at `listen` (HOST:PORT, unix:PATH) with the limits and TLS files of `server`. Each line of
 * `key_file` is an API key, or NAME:KEY for the log; '#' begins a comment. The daemon is started
 * and outlives it. Errors name the file, or are those of listening.
 */
SB_API struct sb_e2b *sb_e2b_start(struct sb_rpc_daemon *d, const char *listen,
	const char *key_file, const struct sb_rpc_server_opts *server, struct sb_error *err);
/* Before the daemon's own stop: takes no more calls, ends streams. Sandboxes stay. */
SB_API void sb_e2b_stop(struct sb_e2b *e, int64_t grace_ms, const struct sb_cancel *hurry);
SB_API void sb_e2b_free(struct sb_e2b *e);

#endif
