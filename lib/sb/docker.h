/* SPDX-License-Identifier: MIT */
#ifndef SB_DOCKER_H
#define SB_DOCKER_H

#include <sb/sandbox.h>

/*
 * Drives the command lines of Docker's sandboxes: "sbx" and "docker sandbox". Commands are started
 * without a shell and end with their call: cancelled or too late, the command is killed. Provider
 * `docker` (sb/provider.h) stands on this.
 */
struct sb_docker;

/*
 * With `prefer_sbx` and a program "sbx" on PATH, that; else "docker sandbox", which need not be
 * there. Runs nothing.
 */
SB_API struct sb_docker *sb_docker_new(bool prefer_sbx, struct sb_error *err);
SB_API void sb_docker_free(struct sb_docker *d); /* NULL is allowed */
SB_API bool sb_docker_is_sbx(const struct sb_docker *d);

/*
 * Asks for the version. SB_E_NOTFOUND: the program is not installed; SB_E_UNSUPPORTED: it is, and
 * does not know sandboxes. The message says what to install.
 */
SB_API int sb_docker_check(struct sb_docker *d, const struct sb_call *call, struct sb_error *err);

/*
 * Which spelling of the command line is installed. B is what the calls below use until it was
 * asked; asking costs one or two commands, once.
 */
enum sb_docker_era {
	SB_DOCKER_ERA_B, /* "network proxy", or rules by position */
	SB_DOCKER_ERA_C, /* "policy allow network --sandbox" */
};
SB_API int sb_docker_probe(struct sb_docker *d, const struct sb_call *call, struct sb_error *err);
SB_API enum sb_docker_era sb_docker_era_of(const struct sb_docker *d);

/* A sandbox as the command line lists it. All owned. */
struct sb_docker_sandbox {
	char *name;
	char *id;                     /* NULL: not told */
	char *status;                 /* NULL: not told */
	struct sb_strlist workspaces; /* the first is the primary one; ":ro" is part of the text */
};
SB_API void sb_docker_sandbox_free(struct sb_docker_sandbox *s); /* what is in it; zeroes it */
/* Whether `dir` is one of its workspaces, read-only ones included. */
SB_API bool sb_docker_sandbox_has(const struct sb_docker_sandbox *s, const char *dir);

struct sb_docker_list {
	struct sb_docker_sandbox *v;
	size_t n;
	bool old; /* by a program of the first versions, which sb_docker_list tells once */
};
SB_API void sb_docker_list_free(struct sb_docker_list *l);
/*
 * All sandboxes. A command that fails (SB_E_CHILD) and an answer that is no list of sandboxes
 * (SB_E_PROTO) are errors: who took them for "none" would make a second sandbox.
 */
SB_API int sb_docker_list(struct sb_docker *d, const struct sb_call *call,
	struct sb_docker_list *out, struct sb_error *err);
/* The parser of that: noise before the JSON, keys "sandboxes" or "vms", or a bare array. */
SB_API int sb_docker_list_parse(const char *text, size_t len, struct sb_docker_list *out,
	struct sb_error *err);

/*
 * The first sandbox whose primary workspace is byte for byte `dir`. 1: it is in `out`; 0: there is
 * none, or the list could not be had.
 */
SB_API int sb_docker_for_workspace(struct sb_docker *d, const char *dir, const struct sb_call *call,
	struct sb_docker_sandbox *out);

struct sb_docker_ensure {
	size_t size;
	const char *workspace;     /* made absolute and clean, no link is resolved */
	const char *const *extras; /* mounted read-only; NULL: none */
	const char *image;         /* template; NULL or "": the agent's own */
	const char *config_dir;    /* mounted read-only */
	const char *agent;         /* kind of agent; NULL: "cagent" */
};
#define SB_DOCKER_ENSURE_INIT \
	{ \
		.size = sizeof(struct sb_docker_ensure) \
	}
/*
 * A sandbox with these mounts: one that has them all is taken again, else all of this workspace are
 * removed and one is made. `name` is a new string.
 */
SB_API int sb_docker_ensure(struct sb_docker *d, const struct sb_docker_ensure *o,
	const struct sb_call *call, char **name, struct sb_error *err);

/* Removes one. SB_E_CHILD when the program could not. */
SB_API int sb_docker_remove(struct sb_docker *d, const char *name, const struct sb_call *call,
	struct sb_error *err);

/*
 * Runs one command: `args` behind the program's own words. SB_E_CHILD for another exit status than
 * 0, with the command, the status and the end of what it said.
 */
SB_API int sb_docker_run(struct sb_docker *d, const char *const *args, const struct sb_call *call,
	struct sb_error *err);

/* The same; `out` becomes what it wrote to stdout, a new string. */
SB_API int sb_docker_output(struct sb_docker *d, const char *const *args,
	const struct sb_call *call, char **out, struct sb_error *err);

/* A command that is ready to run: words, and the whole environment. */
struct sb_docker_command {
	struct sb_strlist argv;
	struct sb_strlist env;
};
SB_API void sb_docker_command_free(struct sb_docker_command *c);
/*
 * "exec" of an agent in a sandbox, for a terminal. `env_flags` are words of the command line ("-e",
 * "NAME"), `env_vars` "NAME=value" of its environment: values never get into the words.
 */
SB_API int sb_docker_exec_command(const struct sb_docker *d, const char *name, const char *dir,
	const char *const *args, const char *const *env_flags, const char *const *env_vars,
	struct sb_docker_command *out, struct sb_error *err);

/* The value of a variable, or NULL: borrowed until the next call. */
typedef const char *(*sb_docker_lookup_fn)(const char *name, void *arg);
/*
 * What an agent needs of our environment. `names` (NULL-terminated: those of its models, then those
 * of its tools) are looked up; names that Docker's proxy fills in itself, and unset or empty ones,
 * are left out. `flags` gets "-e" and the name for each, `vars` "NAME=value".
 */
SB_API int sb_docker_env(const char *const *names, sb_docker_lookup_fn lookup, void *arg,
	struct sb_strlist *flags, struct sb_strlist *vars, struct sb_error *err);
/* Whether Docker's proxy fills that variable in itself. */
SB_API bool sb_docker_env_proxied(const char *name);

/*
 * The same for an agent's file: its models need the tokens of their providers, its tools the
 * secrets that the catalogue of servers in the user's cache names for them. `agent` and `alias` as
 * below. A reference that is no local file, or a file that cannot be read, gives nothing and no
 * error.
 */
SB_API int sb_docker_agent_env(const char *agent, sb_docker_lookup_fn alias, void *alias_arg,
	sb_docker_lookup_fn lookup, void *arg, const struct sb_call *call,
	struct sb_strlist *flags, struct sb_strlist *vars, struct sb_error *err);
/* The names alone, of a file's text: those of models, then those of tools, each group sorted. */
SB_API int sb_docker_agent_parse(const char *text, size_t len, sb_docker_lookup_fn lookup,
	void *arg, struct sb_strlist *names, struct sb_error *err);

/*
 * The names that the user gave to agents, from DIR/config.yaml, or DIR/aliases.yaml of older
 * versions; `dir` NULL: ~/.config/cagent. None is not an error. sb_docker_alias_find is the `alias`
 * of the calls around here, with the result as its argument.
 */
struct sb_docker_alias;
SB_API struct sb_docker_alias *sb_docker_alias_load(const char *dir, struct sb_error *err);
SB_API const char *sb_docker_alias_find(const char *name, void *alias);
SB_API void sb_docker_alias_free(struct sb_docker_alias *a); /* NULL is allowed */

/*
 * The directory of the agent's file when that is outside of `dir`; a new string, "" when no mount
 * is needed: the reference is empty, no local file, or inside. `alias` (may be NULL) says what a
 * name of the user's stands for. NULL: no memory.
 */
SB_API char *sb_docker_extra_workspace(const char *dir, const char *agent,
	sb_docker_lookup_fn alias, void *arg);

/*
 * Lets the sandbox reach these hosts ("host", "host:port", "*.host"), by one command. Blank entries
 * are left out. An entry with a comma, white space, a control byte or a leading '-' fails the call
 * with SB_E_INVAL before anything is run. Other failures (SB_E_CHILD) need not stop anybody.
 */
SB_API int sb_docker_allow_hosts(struct sb_docker *d, const char *name, const char *const *hosts,
	const struct sb_call *call, struct sb_error *err);

/*
 * Keeps DIR/sandbox-tokens.json up to date while it lives: first written before this returns, then
 * every 60 s. The file is 0600, replaced at once, never written through a link. `token` gives a new
 * string, "" when there is none, NULL on failure: the file stays then. Without one, it is Docker
 * Desktop's, else DOCKER_TOKEN of our environment. NULL without error when `gateway` is empty:
 * nothing to do.
 */
struct sb_docker_token;
typedef char *(*sb_docker_token_fn)(void *arg);
struct sb_docker_token_opts {
	size_t size;
	const char *dir, *gateway;
	sb_docker_token_fn token;
	void *arg;
	int64_t every_ms; /* 0: 60000 */
};
#define SB_DOCKER_TOKEN_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_docker_token_opts) \
	}
SB_API struct sb_docker_token *sb_docker_token_start(const struct sb_docker_token_opts *o,
	struct sb_error *err);
/* Ends the writer and removes the file; again, or NULL: nothing. */
SB_API void sb_docker_token_stop(struct sb_docker_token *t);
/* The token of Docker Desktop's account; "" without one. `socket`: where it listens, or NULL. */
SB_API char *sb_docker_desktop_token(void *socket);
/* Stops, and frees it. */
SB_API void sb_docker_token_free(struct sb_docker_token *t);

/*
 * Whether containers of "docker" or "podman" work here. SB_E_NOTFOUND: not installed;
 * SB_E_UNSUPPORTED: it is, and does not answer.
 */
SB_API int sb_engine_try(const char *program, const struct sb_call *call, struct sb_error *err);

/*
 * The containers of an engine that were made for sandboxes of this user and state directory (NULL:
 * the default): lines "CONTAINER\tSANDBOX-ID". One that no record knows is an orphan; it goes, with
 * its files, by sb_orphans_remove.
 */
SB_API int sb_orphans_list(const char *program, const char *state_dir, const struct sb_call *call,
	struct sb_strlist *out, struct sb_error *err);
SB_API int sb_orphans_remove(const char *program, const char *container, const struct sb_call *call,
	struct sb_error *err);

/*
 * Takes back what a sandbox of backend docker with sync: mounted changed in its directories: files
 * are as before it, but for those that were edited since it ended; of these both versions stay. The
 * caller frees `out`. SB_E_NOTFOUND: there is nothing to take back. `state_dir` NULL: the default.
 */
SB_API int sb_mounted_undo(const char *id, const char *state_dir, const struct sb_call *call,
	struct sb_sync_result *out, struct sb_error *err);

#endif
