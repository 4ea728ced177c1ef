/* SPDX-License-Identifier: MIT */
#ifndef SB_SESSION_H
#define SB_SESSION_H

#include <sb/registry.h>

/*
 * Sandboxes from start to end, whatever their provider. Each has a folder in the state directory
 * (STATE/sandboxes/ID) that is written before every step, so that a new process can go on from it:
 * nothing lives in memory only. Sandboxes are independent of each other; a keeper and its sandboxes
 * may be used from many threads, one sandbox from one at a time.
 */
struct sb_keeper;
struct sb_sandbox;

/*
 * Something that happened. All borrowed for the call. Also a line of JSON in the sandbox's folder.
 */
struct sb_event {
	int64_t time_ms; /* Unix time */
	/* "sandbox.prepare|sync|destroy|snapshot" + ".start|.complete|.error",
	   "sandbox.transport.connect|disconnect|error", "sandbox.hook.denied", "sandbox.stopped",
	   "sandbox.unsynced" */
	const char *kind;
	const char *sandbox_id, *session_id, *profile;
	enum sb_backend backend;
	const char *reason, *direction;    /* of a sync; else NULL */
	int64_t duration_ms;               /* complete and error; else -1 */
	int code;                          /* enum sb_code of an error */
	const char *error;                 /* its text, without secrets; NULL */
	const struct sb_sync_result *sync; /* of a sync that is complete; else NULL */
	int exit_code;                     /* of what ran, at transport.disconnect; else -1 */
};
typedef void (*sb_event_fn)(const struct sb_event *ev, void *arg);

/* One line of JSON without its end. New text; NULL: no memory. */
SB_API char *sb_event_json(const struct sb_event *ev);

/*
 * Hooks, at "prepare", "sync.before", "sync.after", "ready" and "stop". A hook may deny: prepare
 * and ready fail the start; sync.before fails a start, and leaves a sync back undone (the sandbox
 * is kept as unsynced); stop keeps the sandbox. A hook that fails denies; sync.after can deny a
 * start only. `exclude` (gitignore patterns) given at prepare and at sync.before of a start counts
 * for all syncs, at another sync.before for that one; `env`
 * ("KEY=value") at prepare and ready. An executable of a profile gets the event as JSON on stdin
 * and may answer
 * {"deny": true, "reason": "...", "exclude": [...], "env": {...}}; another exit status than 0
 * denies, with its stderr as reason.
 */
struct sb_hook_answer {
	bool deny;
	char *reason; /* malloc; NULL: none given */
	struct sb_strlist exclude;
	struct sb_strlist env;
};
struct sb_hook_info {
	const char *event;
	const struct sb_state *state;
	const char *reason, *direction;    /* of a sync */
	const struct sb_sync_result *sync; /* sync.after */
	bool will_destroy;                 /* stop */
};
typedef int (*sb_hook_fn)(const struct sb_hook_info *info, struct sb_hook_answer *out, void *arg,
	struct sb_error *err);
struct sb_hook {
	const char *event; /* NULL: all */
	sb_hook_fn fn;
	void *arg;
};

struct sb_keeper_opts {
	size_t size;
	struct sb_registry *registry; /* borrowed; outlives the keeper. Required */
	const char *state_dir;        /* NULL: $SBSYNC_STATE_DIR, else $XDG_STATE_HOME/sbsync */
	sb_event_fn on_event;         /* from the calling thread */
	void *event_arg;
	const struct sb_hook *hooks; /* borrowed; outlives the keeper */
	size_t n_hooks;
	struct sb_log log;
};
#define SB_KEEPER_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_keeper_opts) \
	}

SB_API struct sb_keeper *sb_keeper_new(const struct sb_keeper_opts *o, struct sb_error *err);
SB_API void sb_keeper_free(struct sb_keeper *k); /* after its sandboxes; NULL is allowed */

/*
 * Every sandbox on record, oldest first: an array for sb_states_free. One whose file cannot be read
 * is logged and left out.
 */
SB_API int sb_keeper_list(struct sb_keeper *k, struct sb_state **out, size_t *out_n,
	struct sb_error *err);
/*
 * The state on record. `id` may be the beginning of one. SB_E_SANDBOX_NOT_FOUND; SB_E_INVAL when
 * several begin so.
 */
SB_API int sb_keeper_load(struct sb_keeper *k, const char *id, struct sb_state *out,
	struct sb_error *err);
/* Does a living process own it? */
SB_API bool sb_state_owned(const struct sb_state *s);
/* A descriptor of its events: lines of JSON. */
SB_API int sb_keeper_events_fd(struct sb_keeper *k, const char *id, struct sb_error *err);

struct sb_start_opts {
	size_t size;
	const struct sb_profile *profile; /* required */
	const char *sandbox_id;           /* NULL: a new one; one on record is started again */
	const char *session_id, *workspace_id;
	const char *local_root;        /* required; made absolute */
	const char *const *local_dirs; /* besides those of the profile */
	const char *agent_command;
	const char *const *agent_env;
	const char *const *excludes;  /* besides the profile's */
	bool keep;                    /* the sandbox outlives its session */
	const char *resume_acp_state; /* see struct sb_prepare_request; NULL: none */
};
#define SB_START_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_start_opts) \
	}

/*
 * Records the sandbox as `creating`, prepares it and syncs to the runtime; then it is `active`. If
 * the sandbox is on record and holds work that is not here yet, the start syncs that back first, or
 * fails (SB_E_UNSYNCED). A start that fails removes the sandbox it made; if it cannot, the sandbox
 * stays on record for sb_keeper_recover. `synced` (may be NULL) gets the result of the sync.
 */
SB_API int sb_sandbox_start(struct sb_keeper *k, const struct sb_start_opts *o,
	const struct sb_call *call, struct sb_sandbox **out, struct sb_sync_result *synced,
	struct sb_error *err);
/*
 * One on record, as it is: no sync, nothing launched, another process may own it. For exec, sync,
 * stop and destroy, which go by the profile of its start, hooks and time limits included.
 */
SB_API int sb_sandbox_open(struct sb_keeper *k, const char *id, struct sb_sandbox **out,
	struct sb_error *err);
/* Ends nothing: the sandbox stays as it is on record. NULL is allowed. */
SB_API void sb_sandbox_free(struct sb_sandbox *sb);

SB_API const struct sb_state *sb_sandbox_state(const struct sb_sandbox *sb);
/*
 * The profile it works by: the one it was started with. All of it is on record (secrets by
 * reference), so it is the same after sb_sandbox_open; only an environment variable whose name
 * looks like a secret's is not. Borrowed, until the next call on the sandbox.
 */
SB_API const struct sb_profile *sb_sandbox_profile(const struct sb_sandbox *sb);
/* Reattaches when this process has not prepared it. Borrowed. */
SB_API struct sb_tool_host *sb_sandbox_tools(struct sb_sandbox *sb, const struct sb_call *call,
	struct sb_error *err);

/*
 * The session of a sandbox host that the sandbox is, for its tools (sb/env.h), and where in it the
 * project is: a directory relative to the session's workspace, as struct sb_host_tool_request takes
 * it. The caller frees all three, the host last and before the sandbox. SB_E_UNSUPPORTED for a
 * backend other than host.
 */
struct sb_env;
struct sb_env_host;
SB_API int sb_sandbox_env(struct sb_sandbox *sb, const struct sb_call *call,
	struct sb_env_host **out_host, struct sb_env **out_env, char **out_dir,
	struct sb_error *err);

/*
 * Runs a program in an ACTIVE sandbox: `spec`, completed from what prepare gave. Secrets are looked
 * up now, and the handle replaces them by asterisks in the stderr it shows. Free the handle before
 * the sandbox. A program that ends badly by itself makes the next stop count as a crash.
 */
SB_API int sb_sandbox_launch(struct sb_sandbox *sb, const struct sb_launch_spec *spec,
	const struct sb_call *call, struct sb_handle **out, struct sb_error *err);

/* Syncs both ways. ACTIVE, STOPPING, UNSYNCED or STOPPED. The caller frees `out`, also on failure.
 */
SB_API int sb_sandbox_sync(struct sb_sandbox *sb, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err);
/* The end of an agent's turn: the same when the sync mode is turn-bidirectional, else nothing. */
SB_API int sb_sandbox_turn(struct sb_sandbox *sb, const struct sb_call *call,
	struct sb_sync_result *out, struct sb_error *err);

struct sb_stop_opts {
	size_t size;
	bool crashed;         /* count it as crash even when nothing that was launched failed */
	const char *snapshot; /* name for a snapshot taken before anything goes; NULL: none */
	bool trust_git_config;
	int64_t max_delete; /* negative: the engine's brake */
};
#define SB_STOP_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_stop_opts), .max_delete = -1 \
	}

/*
 * Syncs back (reason stop, or crash when the agent failed by itself), then ends the sandbox by its
 * policy. Nothing is destroyed before everything is here and verified: a failed sync back leaves it
 * `unsynced` (the error is the sync's). Idempotent. `o` may be NULL. `out` as above.
 */
SB_API int sb_sandbox_stop(struct sb_sandbox *sb, const struct sb_stop_opts *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err);
/* Syncs back and destroys it, whatever its policy; `discard`: without the sync back. */
SB_API int sb_sandbox_destroy(struct sb_sandbox *sb, bool discard, const struct sb_call *call,
	struct sb_sync_result *out, struct sb_error *err);

/*
 * Takes a sandbox off the record, with its session of libsbsync, and asks nobody: what is over
 * there stays there. One that holds work, or that is kept, only with `discard` (else SB_E_UNSYNCED
 * or SB_E_STATE), and never one that a living process owns (SB_E_LOCKED). With `discard` also one
 * whose record cannot be read.
 */
SB_API int sb_keeper_forget(struct sb_keeper *k, const char *id, bool discard,
	struct sb_error *err);

/*
 * One sandbox's outcome of a recovery. `result` is "done", "nothing", "owned", "busy", "away" (a
 * kept one that cannot be reached now) or "failed".
 */
typedef void (*sb_recovered_fn)(const struct sb_state *s, const char *result,
	const struct sb_sync_result *res, const struct sb_error *err, void *arg);
/*
 * Recovery after a restart: syncs back (reason crash) every sandbox that no living process owns,
 * then ends it by its policy. Of one that is kept, every recovery brings what is new there, until
 * it is destroyed. Finds never-used sandboxes by id and removes them; a failure alone never causes
 * a removal. `id` NULL: all. Returns how many failed.
 */
SB_API int sb_keeper_recover(struct sb_keeper *k, const char *id, const struct sb_call *call,
	sb_recovered_fn fn, void *arg, struct sb_error *err);

#endif
