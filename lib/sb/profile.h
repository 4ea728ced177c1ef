/* SPDX-License-Identifier: MIT */
#ifndef SB_PROFILE_H
#define SB_PROFILE_H

#include <sb/sandbox.h>

/* An executable that is run at a point of a session's life: see sb/session.h. */
struct sb_profile_hook {
	char *event;       /* "prepare", "sync.before", "sync.after", "ready", "stop" */
	char **argv;
	int64_t timeout_ms; /* 0: 30 s */
};

/*
 * A profile with all defaults filled in. Texts are owned (malloc). Secrets are here by reference only: `secret_env` is
 * "NAME=env:VARIABLE" or "NAME=file:PATH", looked up when something is launched.
 */
struct sb_profile {
	char *name;
	enum sb_backend backend;
	enum sb_sync_mode sync_mode;
	enum sb_persist persist;
	bool destroy_on_stop;
	enum sb_perm_mode permissions;
	char *runtime_root;     /* NULL: the provider chooses */
	char **env;             /* "KEY=value" */
	char **secret_env;      /* "KEY=reference" */
	char **include;         /* gitignore patterns that take back what `exclude` takes out */
	char **exclude;         /* gitignore patterns of what is not synced, either way */
	char **dirs;            /* further local directories, absolute */
	struct sb_network network;
	char **options;         /* "key=value" of the backend, as its provider names them */
	struct sb_profile_hook *hooks;
	size_t n_hooks;
	int64_t prepare_timeout_ms, sync_timeout_ms, destroy_timeout_ms; /* 0: none */
};

SB_API void sb_profile_free(struct sb_profile *p); /* frees what is in it and zeroes it */
SB_API int sb_profile_copy(const struct sb_profile *p, struct sb_profile *out, struct sb_error *err);

/*
 * A profile named `name` (NULL: the backend's word) with the defaults of the contract: sync mode none for local and
 * session-bidirectional otherwise, transient, approve-reads, no environment. destroy_on_stop is (persist != reuse); the
 * built-in local profile alone has it false.
 */
SB_API int sb_profile_default(enum sb_backend backend, const char *name, struct sb_profile *out,
	struct sb_error *err);

/* Does a variable of this name look as if it held a secret? */
SB_API bool sb_env_looks_secret(const char *name);
/* A letter or '_', then letters, digits and '_'. */
SB_API bool sb_env_name_ok(const char *name);

/*
 * The values that `secret_env` refers to, as "KEY=value" in order of KEY. SB_E_SECRET names key and reference (never
 * a value). Free it with sb_secrets_free, which wipes it first.
 */
SB_API int sb_secrets_resolve(const char *const *secret_env, char ***out, struct sb_error *err);
SB_API void sb_secrets_free(char **v);

#endif
