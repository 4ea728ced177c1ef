/* SPDX-License-Identifier: MIT */
#ifndef SB_ENV_H
#define SB_ENV_H

#include <sb/host-exec.h>
#include <sb/host-snapshot.h>
#include <sb/host.h>

/*
 * Where an agent loop runs its tools: one session of a sandbox host, which is elsewhere or in this
 * process. Both are used in the same way; only sb_env_host_open knows which it is. Everything is
 * thread-safe: tools may run at the same time.
 *
 * Errors are the host's own (sb/host.h) and the transport's: SB_E_CONNECT, SB_E_CLOSED,
 * SB_E_UNAVAILABLE (the host is not there), SB_E_TIMEOUT, SB_E_CANCELED. A call has the limits it
 * is given (`call`, NULL: none) and no others.
 */
struct sb_env_host;
struct sb_env;

/* Exactly one of `address` and `host` is given. Strings are copied. */
struct sb_env_host_opts {
	size_t size;
	const char *address; /* "unix:PATH", "http://HOST:PORT", "https://HOST:PORT" */
	const char *token;   /* bearer token, or NULL */
	const char *ca_file; /* authorities that https is checked with; NULL: the system's */
	int64_t connect_ms;  /* limit for connecting */
	const struct sb_host_opts *host; /* a host in this process; on_event is taken over */
	const char *socket; /* where that host listens; NULL: "env.sock" in its state_dir. At most
			       100 bytes */
};
#define SB_ENV_HOST_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_env_host_opts), .connect_ms = 10000 \
	}

/*
 * A remote host is connected to by the first call. A host in this process is open at once, as by
 * sb_host_open and sb_host_start (SB_E_LOCKED: another process serves its state_dir); it ends with
 * sb_env_host_free, its sessions do not. SIGPIPE must be ignored in a process that is a host.
 */
SB_API struct sb_env_host *sb_env_host_open(const struct sb_env_host_opts *opts,
	struct sb_error *err);
/* All its environments must be freed. NULL is allowed. */
SB_API void sb_env_host_free(struct sb_env_host *h);

/* What the host can do. */
struct sb_env_capabilities {
	char storage[16], runtime[16];
	char isolation_level[16]; /* "none", "namespaces", "kernel" */
	bool snapshots, rollback, fork, diff, quota;
	bool pause, streaming_progress, tier_routing;
	bool isolation, network_policy, ports;
	unsigned concurrent_sessions; /* 0: any number */
	int64_t max_session_ms;       /* how long a session is active at a stretch; 0: for ever */
};
SB_API int sb_env_host_capabilities(struct sb_env_host *h, const struct sb_host_call *call,
	struct sb_env_capabilities *out, struct sb_error *err);

/* What an environment cannot do without. See also SB_ENV_CONFIG_INIT. */
enum sb_env_need {
	SB_ENV_NEED_SNAPSHOTS = 1, /* and rollback */
	SB_ENV_NEED_PAUSE = 2,
	SB_ENV_NEED_TIERS = 4, /* commands run in a runtime, not in the host */
	SB_ENV_NEED_ISOLATION = 8,
	SB_ENV_NEED_NETWORK_POLICY = 16,
};

/*
 * What a host must be, for sb_env_host_check: by default one that isolates, freezes and takes
 * snapshots, whatever storage and runtime that is.
 */
struct sb_env_config {
	size_t size;
	const char *storage, *runtime; /* "zfs", "gvisor", ...; NULL: any */
	unsigned needs;                /* a mask of enum sb_env_need */
};
#define SB_ENV_CONFIG_INIT \
	{ \
		.size = sizeof(struct sb_env_config), \
		.needs = SB_ENV_NEED_SNAPSHOTS | SB_ENV_NEED_PAUSE | SB_ENV_NEED_ISOLATION \
	}
/* SB_E_UNSUPPORTED names what the host has instead, or lacks. */
SB_API int sb_env_host_check(struct sb_env_host *h, const struct sb_env_config *c,
	const struct sb_host_call *call, struct sb_error *err);

/*
 * A new session as `o` says (sb/host.h). `needs` is a mask of enum sb_env_need; what the host lacks
 * of it is SB_E_UNSUPPORTED, before anything is made. When the answer is lost (SB_E_CLOSED,
 * SB_E_TIMEOUT) a session with an id of the caller's can be attached to; give one.
 */
SB_API int sb_env_create(struct sb_env_host *h, const struct sb_host_create_opts *o, unsigned needs,
	const struct sb_host_call *call, struct sb_env **out, struct sb_error *err);
/* A session that is there, in any state. SB_E_SESSION_NOT_FOUND. */
SB_API int sb_env_attach(struct sb_env_host *h, const char *session,
	const struct sb_host_call *call, struct sb_env **out, struct sb_error *err);
/* The session stays. NULL is allowed. */
SB_API void sb_env_free(struct sb_env *e);
SB_API const char *sb_env_id(const struct sb_env *e);

/* What commands in it know its workspace as. New text. */
SB_API int sb_env_workspace(struct sb_env *e, const struct sb_host_call *call, char **out,
	struct sb_error *err);

/*
 * What happens in it from now on: calls `fn` with the kind (as in struct sb_host_event; first
 * "stream.started", when nothing is missed any more) and what it is about, until `fn` gives false
 * or `call` ends. `kind` is the beginning of those that are wanted; NULL: all.
 */
typedef bool (*sb_env_event_fn)(const char *kind, const char *subject, void *arg);
SB_API int sb_env_events(struct sb_env *e, const char *kind, const struct sb_host_call *call,
	sb_env_event_fn fn, void *arg, struct sb_error *err);

/* Frozen for real: sb_host_session_pause. */
SB_API int sb_env_pause(struct sb_env *e, const struct sb_host_call *call, struct sb_error *err);
SB_API int sb_env_resume(struct sb_env *e, const struct sb_host_call *call, struct sb_error *err);
/* As sb_host_session_destroy; of a session that is gone, success. */
SB_API int sb_env_destroy(struct sb_env *e, bool force, const struct sb_host_call *call,
	struct sb_error *err);

enum sb_env_state {
	SB_ENV_CREATING,
	SB_ENV_ACTIVE,
	SB_ENV_PAUSED,
	SB_ENV_DESTROYING,
	SB_ENV_FAILED,
	SB_ENV_DESTROYED, /* by us, or the host does not know it (any more) */
};
SB_API const char *sb_env_state_name(enum sb_env_state s);
/* Asks the host. One that does not answer is an error, not a state. */
SB_API int sb_env_state(struct sb_env *e, const struct sb_host_call *call, enum sb_env_state *out,
	struct sb_error *err);

/* The tools it has, as its host tells them. Freed with sb_host_tools_free. */
SB_API int sb_env_tools(struct sb_env *e, const struct sb_host_call *call,
	struct sb_host_tool **out, size_t *out_n, struct sb_error *err);

/*
 * Runs a tool to its end, as sb_host_tool_execute; `session` of the request does not count.
 * Progress comes from the calling thread as text in UTF-8. A call ends, with everything it started,
 * when its caller or the connection does. Its `call_id` (NULL: a new one) names it: after
 * SB_E_CLOSED the same call again gives the result if it had ended, and runs anew if it had not.
 * Another call with an id in use is SB_E_INVAL. `out` is cleared with sb_host_tool_result_clear.
 */
SB_API int sb_env_execute(struct sb_env *e, const struct sb_host_tool_request *req,
	const struct sb_host_call *call, struct sb_host_tool_result *out, struct sb_error *err);

struct sb_env_snapshot {
	char id[SB_HOST_NAME_MAX + 1]; /* "": a turn on a host without snapshots */
	uint64_t turn;                 /* of the turn, from sb_env_turn */
	uint64_t space_used;
	int64_t created_ns; /* Unix time; 0: nothing was taken */
};
/* A snapshot with the caller's name; the end of a turn. SB_E_NO_SNAPSHOTS (only the former). */
SB_API int sb_env_snapshot(struct sb_env *e, const char *name, const struct sb_host_call *call,
	struct sb_env_snapshot *out, struct sb_error *err);
SB_API int sb_env_turn(struct sb_env *e, const struct sb_host_call *call,
	struct sb_env_snapshot *out, struct sb_error *err);
/* As sb_host_session_rollback. A snapshot that is not there changes nothing. */
SB_API int sb_env_rollback(struct sb_env *e, const char *snapshot, unsigned how,
	const struct sb_host_call *call, struct sb_error *err);

#endif
