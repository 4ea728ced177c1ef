/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_RUNTIME_H
#define SB_HOST_RUNTIME_H

#include <stdbool.h>

#include <base/spawn.h>
#include <sb/host-exec.h>

/* What runs the commands of sessions. Thread-safe. */
struct sb_runtime;

/* A command in a session. */
struct sb_runtime_cmd {
	const char *session;
	const char *workspace;   /* its directory on the host, where the command starts */
	const char *const *argv; /* NULL-terminated */
	const char *const *env;  /* "KEY=value" on top of the runtime's own; NULL-terminated or NULL */
	const char *mark;        /* names the command in its processes, see proctree.h */
	struct sb_host_resources res;
};

struct sb_runtime_ops {
	unsigned version;
	const char *name;
	bool isolates;       /* keeps a command from the host and from other sessions */
	bool network_policy; /* enforces one */

	void (*close)(struct sb_runtime *rt);

	/*
	 * Starts the command; `io` says what its standard descriptors are (its other fields are the runtime's). The child leads
	 * a process session of its own and is the caller's to wait for. SB_E_NOTFOUND, SB_E_DENIED for the program, SB_E_RUNTIME.
	 */
	int (*start)(struct sb_runtime *rt, const struct sb_runtime_cmd *cmd, const struct sb_spawn_opts *io,
		struct sb_child *out, struct sb_error *err);

	/*
	 * Sends `sig` to all processes of a command; `leader` is its child (0: not known any more), `mark` may be a prefix that
	 * means all commands of a session. Returns how many there were.
	 */
	size_t (*signal)(struct sb_runtime *rt, const char *session, const char *mark, pid_t leader, int sig);

	/* Stops or continues everything in the session that carries `mark`. */
	int (*freeze)(struct sb_runtime *rt, const char *session, const char *mark, bool freeze,
		struct sb_error *err);

	/*
	 * Opens a TCP connection to `port` of the command's own network, and to nobody else's. SB_E_UNAVAILABLE when nothing
	 * listens there (yet). NULL: a session has no ports of its own. See reach.h for how it can be done.
	 */
	int (*connect)(struct sb_runtime *rt, const char *session, const char *mark, pid_t leader, unsigned port,
		sb_deadline d, int *out_fd, struct sb_error *err);

	/* The session is gone: what the runtime kept for it goes too. May be NULL. */
	void (*forget)(struct sb_runtime *rt, const char *session);
};

struct sb_runtime {
	const struct sb_runtime_ops *ops;
};

/* Plain processes of the host: a group of their own, a clean environment, limits; no isolation. */
struct sb_runtime *sb_runtime_none_open(struct sb_error *err);

#endif
