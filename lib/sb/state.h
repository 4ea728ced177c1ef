/* SPDX-License-Identifier: MIT */
#ifndef SB_STATE_H
#define SB_STATE_H

#include <sb/sandbox.h>

#define SB_STATE_VERSION 1
#define SB_STATE_MAX (4u << 20) /* bytes of an encoded state */
#define SB_SANDBOX_ID_MAX 64    /* letters, digits, '-', '_', '.'; '-' and '.' not first */

/*
 * All a provider needs to go on with its sandbox in another process: prepare fills it, every later
 * call gets nothing else. Zero-initialise. All texts are owned (malloc), NULL when not known. It is
 * written to disk and shown to users: no secret may be in it, `provider_state` included.
 */
struct sb_state {
	char *sandbox_id; /* by the caller, before the provider is asked; also the name of the
			     libsbsync session */
	char *session_id; /* the caller's name for the session; for labels */
	char *workspace_id;
	enum sb_backend backend;
	char *profile; /* its name */
	enum sb_life life;
	char *instance_id;              /* by the provider; NULL while it has not been made */
	char *local_root;               /* absolute */
	struct sb_strlist local_dirs;   /* further roots, outside of each other and of the first */
	char *runtime_root;             /* opaque here: means something in the runtime only */
	struct sb_strlist runtime_dirs; /* partner of each of local_dirs */
	enum sb_sync_mode sync_mode;
	enum sb_persist persist;
	bool destroy_on_stop;
	enum sb_perm_mode permissions;
	struct sb_strlist
		excludes; /* gitignore patterns, the profile's and those that hooks added */
	struct sb_strlist options; /* "key=value": the profile's options for this backend */
	/*
	 * What else of the profile a new process needs, as a JSON object: environment, references
	 * to secrets, hooks, network, timeouts (provider/profile-json.h).
	 */
	char *settings;
	char *agent_command;         /* what is launched unless told otherwise */
	struct sb_strlist agent_env; /* "KEY=value" of the start, without secrets */
	struct sb_strlist hook_env;  /* "KEY=value" that hooks added, without secrets */
	char *resume_acp_state;      /* see struct sb_prepare_request */
	char *provider_state; /* a JSON object of the provider, with a "version" it checks; at most
				 1 MiB */
	int64_t access_expires_at;                 /* Unix seconds; 0: does not */
	int64_t created_at, prepared_at, ended_at; /* Unix seconds; 0: not yet */
	int64_t last_sync_at;
	char *last_sync_error; /* NULL: the last one went well */
	char *last_error;      /* why it did not start, or was not destroyed */
	int64_t owner_pid;     /* process that works with it; 0: none */
	uint64_t owner_start;  /* its start time, to tell it from a later one of that number */
	int exit_code;         /* of what was run last; -1: nothing ended yet */
	char *command;         /* what was run last, for display */
	char *unknown; /* JSON object of members of the file that this version does not know; kept
			*/
};

/* Empty, with `exit_code` -1. */
#define SB_STATE_INIT \
	{ \
		.exit_code = -1 \
	}
SB_API void sb_state_free(struct sb_state *s); /* frees what is in it and zeroes it */
/* An array from malloc, with everything in it. */
SB_API void sb_states_free(struct sb_state *v, size_t n);
/* Deep copy; `out` is overwritten, not freed. */
SB_API int sb_state_copy(const struct sb_state *s, struct sb_state *out, struct sb_error *err);

/*
 * As JSON: one object with "version", members of the contract's names (sandbox_id, backend,
 * profile, state, instance_id, runtime_root_dir, runtime_additional_dirs, provider_state, ...),
 * empty ones left out. Paths that are no UTF-8 survive. Decoding refuses a newer version
 * (SB_E_VERSION), damaged text and wrong types (SB_E_CORRUPT, naming the member), too much
 * (SB_E_LIMIT); unknown members go to `unknown` and are written again.
 */
SB_API int sb_state_encode(const struct sb_state *s, char **out, struct sb_error *err);
SB_API int sb_state_decode(const char *text, size_t len, struct sb_state *out,
	struct sb_error *err);

/*
 * What prepare must have given: a sandbox id, a valid backend, a runtime root; as many runtime_dirs
 * as local_dirs. SB_E_INVAL names what is missing.
 */
SB_API int sb_state_check(const struct sb_state *s, struct sb_error *err);
SB_API bool sb_sandbox_id_ok(const char *id);
/* A new random one: "sb-" and 16 hex digits. */
SB_API int sb_sandbox_id_new(char out[SB_SANDBOX_ID_MAX + 1], struct sb_error *err);

#endif
