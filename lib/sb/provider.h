/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_H
#define SB_PROVIDER_H

#include <sb/launcher.h>
#include <sb/profile.h>
#include <sb/sandbox.h>
#include <sb/state.h>
#include <sb/toolhost.h>

#define SB_PROVIDER_VERSION 5

/* Labels that a provider puts on what it makes, where the place can hold labels. */
#define SB_LABEL_SESSION "sb_session_id"
#define SB_LABEL_SANDBOX "sb_sandbox_id"

/* What a provider can do, for this profile. Zero means no. */
struct sb_capabilities {
	size_t size;
	bool remote; /* the runtime's paths mean nothing here */
	bool syncs;  /* the runtime has files of its own; false: the local root is the runtime root
		      */
	bool embedded;  /* what is launched runs as a child of this process */
	bool find;      /* finds by labels what a crash left behind */
	bool archive;   /* persist: archive */
	bool snapshots; /* member snapshot */
	/*
	 * What the place can do by an interface of its own (sb/host.h): this contract has no member
	 * for it.
	 */
	bool rollback, fork, pause;
	bool streaming;        /* output comes while a program runs */
	bool tty;              /* launch with a terminal */
	bool enforces_network; /* the network policy of this profile; NULL profile: no network */
	const char *isolation; /* "none", "user", "namespace", "gvisor", "vm", "machine" */
	bool enforces_lists;   /* allow and deny lists (doc/NETWORK.md) */
};
#define SB_CAPABILITIES_INIT \
	{ \
		.size = sizeof(struct sb_capabilities), .isolation = "none" \
	}

/* Everything borrowed for the call; a provider copies what it keeps. */
struct sb_prepare_request {
	size_t size;
	const char *sandbox_id;                /* never empty */
	const char *session_id, *workspace_id; /* may be NULL */
	const char *instance_id; /* reattach to this one; NULL: look by labels, else make one */
	const char *local_root;  /* absolute, exists */
	const char *const *local_dirs;
	const struct sb_profile *profile;
	const char *const *excludes;  /* of the profile and of hooks; goes into the state */
	const char *agent_command;    /* default of what is launched; may be NULL */
	const char *const *agent_env; /* "KEY=value", without secrets */
	enum sb_perm_mode permissions;
	const char *provider_state; /* of the state that is reattached to; NULL: none */
	/*
	 * What the agent needs to go on with an earlier conversation, as it gave it out itself;
	 * NULL: a new one. Launched programs find it as SB_RESUME_ACP_STATE.
	 */
	const char *resume_acp_state;
	bool may_create; /* when what `instance_id` names is gone: make a new one; else
			    SB_E_SANDBOX_NOT_FOUND */
};
#define SB_PREPARE_REQUEST_INIT \
	{ \
		.size = sizeof(struct sb_prepare_request), .may_create = true \
	}

struct sb_find_request {
	size_t size;
	const char *sandbox_id;                              /* never empty */
	const char *session_id, *workspace_id, *instance_id; /* may be NULL */
	const char *local_root;
	const char *const *local_dirs;
	const struct sb_profile *profile;
	const char *const *labels; /* "KEY=value", all must match; NULL: SB_LABEL_SANDBOX */
	const char *provider_state;
};
#define SB_FIND_REQUEST_INIT \
	{ \
		.size = sizeof(struct sb_find_request) \
	}

/* The result of prepare. `launch` borrows from `state` and from `keep`. */
struct sb_prepared {
	struct sb_state state;
	struct sb_launcher *launcher;
	struct sb_tool_host *tools;
	struct sb_launch_spec launch; /* defaults for what is launched: command, cwd, dirs, env */
	struct sb_strlist keep;       /* texts that `launch` points to */
	struct sb_strlist keep_env;   /* the list launch.env points to, when it is its own */
	struct sb_strlist keep_dirs;
};
SB_API void sb_prepared_free(struct sb_prepared *p); /* launcher and tool host too; zeroes it */

struct sb_provider_sync {
	size_t size;
	enum sb_when reason;
	/*
	 * gitignore patterns besides those in the state, for this run; those of the first push stay
	 * in force.
	 */
	const char *const *excludes;
	bool dry_run;                  /* tell what would be done, change nothing */
	bool take_local, take_runtime; /* a side wins conflicts; neither: both versions are kept */
	bool trust_git_config;
	int64_t max_delete; /* negative: the engine's brake */
};
#define SB_PROVIDER_SYNC_INIT \
	{ \
		.size = sizeof(struct sb_provider_sync), .max_delete = -1 \
	}

/* An option of a profile that a provider takes ("ssh: {port: 22}"). */
struct sb_provider_option {
	const char *name;  /* NULL ends the table */
	const char *value; /* what it is, for messages: "PORT", "PATH" */
	const char *help;
	const char *const
		*choices; /* allowed words, NULL-terminated; NULL: any text that `check` likes */
	/* NULL: any. False: not a value of it. */
	bool (*check)(const char *text);
	bool required;
	bool user_only; /* runs or reads something here: not taken from a file that came with a
			   project */
	bool place;     /* says where a sandbox is: one that is there keeps its value */
};

struct sb_provider;
struct sb_env_host; /* sb/env.h */

/*
 * A provider. Any thread may call any member; calls on different sandboxes run in parallel. Every
 * call obeys its deadline and cancel token (SB_E_TIMEOUT, SB_E_CANCELED) and leaves something that
 * a later call can go on with. After prepare, calls get the state alone and work in a new process.
 * "May be NULL" is said where so.
 */
struct sb_provider_ops {
	unsigned version; /* SB_PROVIDER_VERSION */
	const char *name; /* one line for people */
	enum sb_backend backend;
	const struct sb_provider_option *options; /* may be NULL: takes none */
	/*
	 * `profile` may be NULL; without one it answers without the network. For a profile whose
	 * place can tell (backend host with a url) it asks there, for 10 s at most.
	 */
	int (*capabilities)(struct sb_provider *p, const struct sb_profile *profile,
		struct sb_capabilities *out, struct sb_error *err);
	/*
	 * Makes the sandbox or reattaches to it. Refuses a backend that is not its own and a
	 * required network policy it cannot enforce (SB_E_NETWORK_POLICY). Calling it again with
	 * the same sandbox id gives the same sandbox, also after a crash in the middle of the
	 * first. It syncs nothing. `out->state.life` is READY; excludes, options, sync mode,
	 * persist and so on are copied from the request.
	 */
	int (*prepare)(struct sb_provider *p, const struct sb_prepare_request *req,
		const struct sb_call *call, struct sb_prepared *out, struct sb_error *err);
	/*
	 * Sync of all root pairs by the session of libsbsync that is named as the sandbox.
	 * sync_mode none moves nothing and succeeds. to_runtime: reason start makes the first push,
	 * goes on with one that was interrupted, and on a sandbox that has been synced before goes
	 * both ways (work over there is never overlaid); reason turn goes both ways. from_runtime:
	 * stop, crash and turn. Success means everything is here, verified and durable.
	 * SB_E_UNSYNCED when the state of the session forbids a push. `out` is always initialised;
	 * the caller frees it with sb_sync_result_free.
	 */
	int (*sync_to_runtime)(struct sb_provider *p, const struct sb_state *s,
		const struct sb_provider_sync *o, const struct sb_call *call,
		struct sb_sync_result *out, struct sb_error *err);
	int (*sync_from_runtime)(struct sb_provider *p, const struct sb_state *s,
		const struct sb_provider_sync *o, const struct sb_call *call,
		struct sb_sync_result *out, struct sb_error *err);
	/*
	 * Ends the sandbox as `s->persist` says: transient removes it, archive puts it away, reuse
	 * leaves it. Not there is success. Unless `discard`, SB_E_UNSYNCED when the last sync back
	 * did not succeed (nothing is touched then); a sandbox into which nothing was ever pushed
	 * may go. Also forgets the session of libsbsync when the sandbox is removed.
	 */
	int (*destroy)(struct sb_provider *p, const struct sb_state *s, bool discard,
		const struct sb_call *call, struct sb_error *err);
	/*
	 * Looks for a sandbox by identity; starts nothing. SB_E_SANDBOX_NOT_FOUND. State FOUND. May
	 * be NULL.
	 */
	int (*find)(struct sb_provider *p, const struct sb_find_request *req,
		const struct sb_call *call, struct sb_state *out, struct sb_error *err);
	/* Keeps the sandbox's files as they are now under `name`. May be NULL. */
	int (*snapshot)(struct sb_provider *p, const struct sb_state *s, const char *name,
		const struct sb_call *call, struct sb_error *err);
	/* May be NULL. */
	void (*free)(struct sb_provider *p);
	/*
	 * What the sandbox was kept from reaching: a line for people that also says the way out, or
	 * "" for nothing. May be NULL.
	 */
	int (*refused)(struct sb_provider *p, const struct sb_state *s, const struct sb_call *call,
		char *out, size_t size, struct sb_error *err);
	/*
	 * The "version" of the provider_state that it writes: sb_provider_* give it no state of a
	 * newer one, nor one without a version (SB_E_VERSION). 0: it looks at that itself.
	 */
	unsigned state_version;
	/*
	 * The sandbox host that has the sandbox as its session of the same id, for sb_env_attach;
	 * freed with sb_env_host_free before the provider. May be NULL: it is no such session.
	 */
	struct sb_env_host *(
		*env_host)(struct sb_provider *p, const struct sb_state *s, struct sb_error *err);
	/*
	 * Looks whether sandboxes of this profile could be made: log-in, account, what they are
	 * made of. Makes and changes nothing. Each thing that is right is a line for people in
	 * `out`; the first that is not is the error, with the way out. May be NULL: nothing of it
	 * can be tried.
	 */
	int (*probe)(struct sb_provider *p, const struct sb_profile *profile,
		const struct sb_call *call, struct sb_strlist *out, struct sb_error *err);
};

/* Implementations embed it as their first member. */
struct sb_provider {
	const struct sb_provider_ops *ops;
};

/*
 * The members by name. They check what every provider would have to: arguments, a call that is
 * over, the version of the state, a missing optional member (SB_E_UNSUPPORTED). sb_provider_free
 * takes NULL.
 */
SB_API int sb_provider_capabilities(struct sb_provider *p, const struct sb_profile *profile,
	struct sb_capabilities *out, struct sb_error *err);
SB_API int sb_provider_prepare(struct sb_provider *p, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_prepared *out, struct sb_error *err);
SB_API int sb_provider_sync(struct sb_provider *p, const struct sb_state *s, enum sb_way way,
	const struct sb_provider_sync *o, const struct sb_call *call, struct sb_sync_result *out,
	struct sb_error *err);
SB_API int sb_provider_destroy(struct sb_provider *p, const struct sb_state *s, bool discard,
	const struct sb_call *call, struct sb_error *err);
SB_API int sb_provider_find(struct sb_provider *p, const struct sb_find_request *req,
	const struct sb_call *call, struct sb_state *out, struct sb_error *err);
SB_API int sb_provider_snapshot(struct sb_provider *p, const struct sb_state *s, const char *name,
	const struct sb_call *call, struct sb_error *err);
SB_API int sb_provider_refused(struct sb_provider *p, const struct sb_state *s,
	const struct sb_call *call, char *out, size_t size, struct sb_error *err);
/* The options of the profile are checked before; SB_E_UNSUPPORTED where the member is missing. */
SB_API int sb_provider_probe(struct sb_provider *p, const struct sb_profile *profile,
	const struct sb_call *call, struct sb_strlist *out, struct sb_error *err);
/* SB_E_UNSUPPORTED where the member is missing. */
SB_API struct sb_env_host *sb_provider_env_host(struct sb_provider *p, const struct sb_state *s,
	struct sb_error *err);
SB_API void sb_provider_free(struct sb_provider *p);

/* Fills the parts of a new state that come straight from the request; for providers. */
SB_API int sb_state_from_request(const struct sb_prepare_request *req, struct sb_state *out,
	struct sb_error *err);

#endif
