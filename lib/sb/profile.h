/* SPDX-License-Identifier: MIT */
#ifndef SB_PROFILE_H
#define SB_PROFILE_H

#include <sb/sandbox.h>
#include <sb/trust.h>

/* An executable that is run at a point of a session's life: see sb/session.h. */
struct sb_profile_hook {
	char *event; /* "prepare", "sync.before", "sync.after", "ready", "stop" */
	struct sb_strlist argv;
	int64_t timeout_ms; /* 0: 30 s */
};

/*
 * A profile with all defaults filled in. Texts are owned (malloc). Secrets are here by reference
 * only: `secret_env` is "NAME=env:VARIABLE" or "NAME=file:PATH", looked up when something is
 * launched.
 */
struct sb_profile {
	char *name;
	enum sb_backend backend;
	enum sb_sync_mode sync_mode;
	enum sb_persist persist;
	bool destroy_on_stop;
	enum sb_perm_mode permissions;
	char *runtime_root;           /* NULL: the provider chooses */
	struct sb_strlist env;        /* "KEY=value" */
	struct sb_strlist secret_env; /* "KEY=reference" */
	struct sb_strlist include; /* gitignore patterns that take back what `exclude` takes out */
	struct sb_strlist exclude; /* gitignore patterns of what is not synced, either way */
	struct sb_strlist dirs;    /* further local directories, absolute */
	struct sb_network network;
	struct sb_strlist options; /* "key=value" of the backend, as its provider names them */
	struct sb_profile_hook *hooks;
	size_t n_hooks;
	int64_t prepare_timeout_ms, sync_timeout_ms, destroy_timeout_ms; /* 0: none */
};

SB_API void sb_profile_free(struct sb_profile *p); /* frees what is in it and zeroes it */
SB_API int sb_profile_copy(const struct sb_profile *p, struct sb_profile *out,
	struct sb_error *err);

/*
 * A profile named `name` (NULL: the backend's word) with the defaults of the contract: sync mode
 * none for local and session-bidirectional otherwise, transient, approve-reads, no environment.
 * destroy_on_stop is (persist != reuse); the built-in local profile alone has it false.
 */
SB_API int sb_profile_default(enum sb_backend backend, const char *name, struct sb_profile *out,
	struct sb_error *err);

/*
 * Profiles on disk: the user's file ($XDG_CONFIG_HOME/sandbox/config.yaml) and a project's
 * (.sandbox.yaml). The project's comes with the workspace, so a sandbox may have written it. What
 * would run or read something here (hooks, secret_env, dirs, some options) is a mistake in it, and
 * all the rest counts only after the user consented to exactly its content (sb/trust.h). A user's
 * file that lies in the project's directory needs consent as well.
 */
struct sb_profiles;
struct sb_registry;

typedef void (*sb_mistake_fn)(const char *file, size_t line, const char *text, void *arg);

/*
 * The network policy by one word: "on", "off", or entries of an allow list with commas between
 * (doc/NETWORK.md). "off" and entries are required: where they cannot be enforced nothing starts.
 * The deny list stays. SB_E_USAGE names the entry that is wrong.
 */
SB_API int sb_profile_set_network(struct sb_profile *p, const char *word, struct sb_error *err);

struct sb_profiles_opts {
	size_t size;
	const char *user_file;   /* NULL: the default, which need not exist; "": none */
	const char *project_dir; /* NULL: none */
	struct sb_registry
		*registry; /* knows the options of each backend; NULL: they are not checked */
	sb_mistake_fn on_mistake; /* hears of each mistake, with the allowed values; may be NULL */
	void *mistake_arg;
	const char *state_dir;    /* where consent is on record; NULL: the default */
	sb_consent_fn on_consent; /* asks the user; NULL: what nobody consented to is refused */
	void *consent_arg;
	/* Whether a kind of controls takes an option (sb_control_option_check); NULL: not checked.
	 */
	int (*control_option)(const char *kind, const char *key, const char *value,
		struct sb_error *err);
	bool inspect; /* only to be shown: nobody is asked, nothing is refused. What is read this
			 way must not be started. */
};
#define SB_PROFILES_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_profiles_opts) \
	}

/*
 * NULL with the first mistake as "FILE:LINE: ..." in `err` when there is any, and with
 * SB_E_UNTRUSTED when a file of the project is there without consent.
 */
SB_API struct sb_profiles *sb_profiles_load(const struct sb_profiles_opts *o, struct sb_error *err);
SB_API void sb_profiles_free(struct sb_profiles *ps);
/* What the project's file names, else what defaults.sandbox names, else NULL. */
SB_API const char *sb_profiles_chosen(const struct sb_profiles *ps);
/*
 * A profile by name; NULL: the chosen one, else the built-in "local". The project's exclude and
 * include are added. SB_E_PROFILE_NOT_FOUND names those there are; SB_E_STATE when the project has
 * sandboxes disabled and one is named.
 */
SB_API int sb_profiles_get(const struct sb_profiles *ps, const char *name, struct sb_profile *out,
	struct sb_error *err);
/*
 * Whether the user consented to the project's file; SB_TRUST_GIVEN also when it is not there or
 * says nothing, SB_TRUST_NEW when the record of consent cannot be relied on. What was read with
 * `inspect` may be without consent.
 */
SB_API enum sb_trust sb_profiles_trust(const struct sb_profiles *ps);
/*
 * What the project's file does, in plain words, one line each (as in struct sb_consent). A new
 * string, empty when there is no such file or it says nothing.
 */
SB_API char *sb_profiles_effects(const struct sb_profiles *ps, struct sb_error *err);
SB_API size_t sb_profiles_count(const struct sb_profiles *ps);
/* Borrowed. `file` and `line` (may be NULL) get where it stands. */
SB_API const struct sb_profile *sb_profiles_at(const struct sb_profiles *ps, size_t i,
	const char **file, size_t *line);

/*
 * A control (sb/control.h) of the user's file; a project's file has none. Borrowed from `ps`. NULL
 * `name`: what defaults.control names, else the only one there is. SB_E_PROFILE_NOT_FOUND names
 * those there are.
 */
struct sb_profile_control {
	char *name, *kind;
	struct sb_strlist options; /* "key=value" */
	const char *file;
	size_t line;
};
SB_API const struct sb_profile_control *sb_profiles_control(const struct sb_profiles *ps,
	const char *name, struct sb_error *err);
SB_API const struct sb_profile_control *sb_profiles_control_at(const struct sb_profiles *ps,
	size_t i); /* NULL: there are no more */

/*
 * The values that `secret_env` refers to, as "KEY=value" in order of KEY. SB_E_SECRET names key and
 * reference (never a value). Free it with sb_secrets_free, which wipes it first.
 */
SB_API int sb_secrets_resolve(const char *const *secret_env, struct sb_strlist *out,
	struct sb_error *err);
SB_API void sb_secrets_free(struct sb_strlist *l);

#endif
