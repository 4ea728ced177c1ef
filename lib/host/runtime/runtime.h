/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_RUNTIME_H
#define SB_HOST_RUNTIME_H

#include <stdbool.h>

#include <base/spawn.h>
#include <base/strlist.h>
#include <sb/host-exec.h>

/* A runtime runs the commands of sessions. All operations are thread-safe. */
struct sb_runtime;

/* A command in a session. */
struct sb_runtime_cmd {
	const char *session;
	const char *workspace;   /* its directory on the host; the command starts in it, under the
				    name the runtime gives it */
	const char *const *argv; /* NULL-terminated */
	const char *const
		*env;     /* "KEY=value" on top of the runtime's own; NULL-terminated or NULL */
	const char *mark; /* names the command in its processes, see proctree.h */
	enum sb_host_network network; /* of the session */
	bool leave;   /* what it leaves in the background goes on; else it ends with the command */
	bool outlive; /* goes on when the host dies; else it ends, too. `status` needs it */
	const char *status; /* the exit code is written to this file, for who comes after the host;
			       NULL: not. Runtime none needs sb-box for it */
	struct sb_host_resources res;
};

struct sb_runtime_limits {
	const char *pids, *memory, *cpus;
};

struct sb_runtime_ops {
	unsigned version;
	const char *name;
	enum sb_host_runtime kind;
	const char *isolation; /* "none", "namespaces", "kernel" (a kernel of its own) */
	bool isolates;         /* keeps a command from the host and from other sessions */
	bool network_policy;   /* enforces one */
	unsigned networks;     /* bit mask of 1 << enum sb_host_network that it can do */
	const char
		*workspace; /* what commands know the workspace as; NULL: by its path on the host */

	void (*close)(struct sb_runtime *rt);

	/*
	 * Whether network outbound can be enforced here: 0, or SB_E_UNSUPPORTED with the reason.
	 * NULL: it cannot.
	 */
	int (*outbound)(struct sb_runtime *rt, struct sb_error *err);
	/*
	 * What a session with network outbound may reach, for its commands from now on and for
	 * those that run: lines as sb_netpolicy_parse reads them. `cut` is how many connections
	 * ended by that. The runtime remembers it until it is told NULL. A session that was told
	 * none runs nothing. NULL: there is no such network.
	 */
	int (*policy)(struct sb_runtime *rt, const char *session, const char *text, size_t *cut,
		struct sb_error *err);

	/*
	 * Starts the command; `io` says what its standard descriptors are (its other fields are the
	 * runtime's). The child leads a process session of its own and is the caller's to wait for;
	 * its exit code is the command's, 128+n for a signal. SB_E_NOTFOUND, SB_E_DENIED for the
	 * program where that is known at once (else the codes 127 and 126), SB_E_RUNTIME.
	 */
	int (*start)(struct sb_runtime *rt, const struct sb_runtime_cmd *cmd,
		const struct sb_spawn_opts *io, struct sb_child *out, struct sb_error *err);

	/*
	 * Sends `sig` to all processes of a command; `leader` is its child (0: not known any more),
	 * `mark` may be a prefix that means all commands of a session; `session` NULL: of every
	 * session. Returns how many there were.
	 */
	size_t (*signal)(struct sb_runtime *rt, const char *session, const char *mark, pid_t leader,
		int sig);

	/* Stops or continues everything in the session that carries `mark`. */
	int (*freeze)(struct sb_runtime *rt, const char *session, const char *mark, bool freeze,
		struct sb_error *err);

	/*
	 * As `freeze`, for a moment: a restarted host does not find it frozen. NULL: freeze does.
	 */
	int (*still)(struct sb_runtime *rt, const char *session, const char *mark, bool on,
		struct sb_error *err);

	/*
	 * Takes the workspace out of the session's box, and puts in what is at `path` on the host.
	 * 0: done, or there is no box; 1: something inside uses it (never with `force`);
	 * SB_E_UNSUPPORTED: this box keeps what it was made with. Nothing is started meanwhile.
	 * NULL: the runtime has no boxes.
	 */
	int (*detach)(struct sb_runtime *rt, const char *session, bool force, struct sb_error *err);
	int (*attach)(struct sb_runtime *rt, const char *session, const char *path,
		struct sb_error *err);
	/*
	 * Kills everything in the session but its box. False: it could not; NULL: it cannot.
	 */
	bool (*clear)(struct sb_runtime *rt, const char *session);

	/*
	 * Opens a TCP connection to `port` of the command's own network, and to nobody else's.
	 * SB_E_UNAVAILABLE when nothing listens there (yet). NULL: a session has no ports of its
	 * own. See reach.h for how it can be done.
	 */
	int (*connect)(struct sb_runtime *rt, const char *session, const char *mark, pid_t leader,
		unsigned port, sb_deadline d, int *out_fd, struct sb_error *err);

	/*
	 * How often something in a session with network none asked for a way out and found none.
	 * May be NULL.
	 */
	uint64_t (*unrouted)(struct sb_runtime *rt, const char *session);

	/*
	 * How many processes of the session the kernel killed so far because memory ran out. May be
	 * NULL.
	 */
	uint64_t (*ooms)(struct sb_runtime *rt, const char *session);

	/*
	 * What holds the limits of a session: "cgroup2", "cgroup1", "rlimit" (of the box's user),
	 * "watch" (the host looks, and ends the largest), "none".
	 */
	void (*limits)(struct sb_runtime *rt, struct sb_runtime_limits *out);

	/*
	 * Whether the runtime keeps something running for the session (also from before a restart).
	 * May be NULL.
	 */
	bool (*holds)(struct sb_runtime *rt, const char *session);

	/*
	 * Removes what the runtime kept for a session that is gone or must be free of users. May be
	 * NULL.
	 */
	void (*forget)(struct sb_runtime *rt, const char *session);

	/*
	 * At the start of a host: ends and removes what belongs to no session that `known` knows.
	 * May be NULL.
	 */
	void (*sweep)(struct sb_runtime *rt, bool (*known)(const char *session, void *arg),
		void *arg);
};

struct sb_runtime {
	const struct sb_runtime_ops *ops;
};

/* What runtimes need of the host. */
struct sb_runtime_opts {
	const struct sb_host_opts *host;
	const char *key; /* names the host in marks and groups */
	bool picky;      /* not one in which common programs fail */
	/* Gets each decision about a session's network as a line of JSON; may be NULL. */
	void (*on_network)(const char *session, const char *line, void *arg);
	void *network_arg;
};

/* Plain processes of the host: a group of their own, a clean environment, limits; no isolation. */
struct sb_runtime *sb_runtime_none_open(const struct sb_runtime_opts *o, struct sb_error *err);
/* Both probe whether they work here: SB_E_UNSUPPORTED with the reason. */
struct sb_runtime *sb_runtime_bwrap_open(const struct sb_runtime_opts *o, struct sb_error *err);
struct sb_runtime *sb_runtime_gvisor_open(const struct sb_runtime_opts *o, struct sb_error *err);
/*
 * By kind; SB_HOST_RUNTIME_AUTO is the one that isolates best among those that work, never none:
 * SB_E_UNSUPPORTED with the reasons.
 */
struct sb_runtime *sb_runtime_open(enum sb_host_runtime kind, const struct sb_runtime_opts *o,
	struct sb_error *err);

/* 0, or SB_E_UNSUPPORTED: the runtime cannot enforce that network. */
int sb_runtime_network_check(struct sb_runtime *rt, const struct sb_host_opts *o,
	enum sb_host_network net, struct sb_error *err);

/* Adds the mark, the caller's entries (without one of the same name), then `fixed`. */
int sb_runtime_env(const struct sb_runtime_cmd *cmd, const char *const *fixed,
	struct sb_strlist *env, struct sb_error *err);
/* Where bin/sb-box is, or NULL. A new string. */
char *sb_runtime_helper(const struct sb_host_opts *o);
/* The same for another helper, which is beside it. */
char *sb_runtime_helper_of(const struct sb_host_opts *o, const char *name);
/*
 * The user whom the workspace, and what runs in its session, belongs to: the directory's owner, one
 * of session_uid_first and so on. 0: it belongs to none of them.
 */
uid_t sb_runtime_owner(const struct sb_host_opts *o, const char *workspace);
/* An absolute path of the program in PATH, or NULL. */
char *sb_runtime_program(const char *name);

#endif
