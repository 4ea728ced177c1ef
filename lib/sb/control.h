/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_H
#define SB_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/cancel.h>
#include <sb/error.h>
#include <sb/log.h>
#include <sb/strlist.h>

/*
 * The control plane: makes sandboxes somewhere and runs processes in them, for a program that
 * orchestrates. One contract, whatever is behind it (doc/CONTROL.md). Lists are borrowed and
 * NULL-terminated, NULL is an empty one.
 *
 * Thread-safe: calls on different sandboxes run in parallel. Every call ends by its deadline or
 * when it is canceled (SB_E_TIMEOUT, SB_E_CANCELED) and leaves something that a later call, also of
 * another process, can go on with. What a control cannot do is SB_E_UNSUPPORTED with its name and
 * the reason, before anything happens; nothing that was asked for is left out silently.
 */
struct sb_control;

#define SB_CONTROL_VERSION 1
#define SB_CONTROL_ID_MAX 255
#define SB_CONTROL_ADDRESS_MAX 300
#define SB_CONTROL_KEY_MAX 128
#define SB_CONTROL_LABELS_MAX 48
#define SB_CONTROL_LABEL_KEY_MAX 120
#define SB_CONTROL_LABEL_VALUE_MAX 256
/* Labels that begin so are the control's own: nobody gives them, nobody is shown them. */
#define SB_CONTROL_LABEL_OWN "sb."

/* How long a call may take. NULL: the limit that the control has for calls of its kind. */
struct sb_control_call {
	const struct sb_cancel *cancel; /* may be NULL */
	sb_deadline deadline;           /* SB_NEVER: the control's limit */
	uint64_t fence; /* a fencing token: who showed a lower one than somebody before is refused
			   (SB_E_FENCED); 0: none */
};
#define SB_CONTROL_CALL_INIT \
	{ \
		.deadline = SB_NEVER \
	}

/* Limits of calls that come with none, in milliseconds. */
struct sb_control_limits {
	int64_t create_ms, destroy_ms;
	int64_t launch_ms; /* besides the time to wait for a port */
	int64_t pause_ms;  /* and resume, snapshot, rollback, fork */
	int64_t ask_ms;    /* what only asks, and kill */
};
#define SB_CONTROL_LIMITS_INIT \
	{ \
		.create_ms = 600000, .destroy_ms = 180000, .launch_ms = 60000, .pause_ms = 120000, \
		.ask_ms = 20000 \
	}

/* What a control can do here and now, as its place tells. */
struct sb_control_caps {
	size_t size;
	bool launch;
	bool snapshots, rollback, fork;
	bool pause;       /* pause and resume */
	bool pause_keeps; /* processes go on where they were; false: a pause ends them */
	bool deep_pause;  /* pause also frees the place; resume brings it back */
	bool bases;       /* create takes one */
	bool resources;   /* create takes cpus and mem_mb, and they are enforced */
	bool disk;        /* create takes disk_mb */
	bool network;     /* create takes a network other than the default */
	bool lifetime;    /* create takes one */
	bool fence;
	unsigned concurrent_sandboxes; /* 0: no limit */
	int64_t max_lifetime_ms;       /* 0: no limit */
	char isolation[16];            /* "none", "namespaces", "kernel", "machine" */
};
#define SB_CONTROL_CAPS_INIT \
	{ \
		.size = sizeof(struct sb_control_caps), .isolation = "none" \
	}

enum sb_control_state {
	SB_CONTROL_CREATING,
	SB_CONTROL_RUNNING,
	SB_CONTROL_PAUSED,
	SB_CONTROL_DESTROYING,
	SB_CONTROL_FAILED,      /* only destroy leads out; `why` says what happened */
	SB_CONTROL_UNREACHABLE, /* it is there, and does not answer; `why` says how */
};
SB_API const char *sb_control_state_name(enum sb_control_state s);

/* A sandbox as it is now. Freed with sb_control_sandbox_free. */
struct sb_control_sandbox {
	char id[SB_CONTROL_ID_MAX + 1];
	enum sb_control_state state;
	/* Where it is reached: HOST:PORT, or unix:PATH of this machine; "" where nowhere. */
	char address[SB_CONTROL_ADDRESS_MAX + 1];
	bool tls;                 /* HTTP at that address goes over TLS */
	struct sb_strlist labels; /* "KEY=VALUE" */
	char *why;                /* NULL: nothing to say */
	char *instance;           /* the machine it has for itself; NULL: none */
	char *rsh, *endpoint;     /* `sbsync start --rsh RSH --exclude /.cache --exclude /.local
				     DIR ENDPOINT` syncs with its workspace; NULL: it cannot be
				     synced with now */
	int64_t created_ns;       /* Unix time; 0: unknown */
	int64_t expires_ns;       /* when its lifetime is over; 0: never, or not now */
};
SB_API void sb_control_sandbox_free(struct sb_control_sandbox *s); /* zeroes it */

enum sb_control_network {
	SB_CONTROL_NET_DEFAULT, /* the place's own choice; with lists: OUTBOUND */
	SB_CONTROL_NET_NONE,
	SB_CONTROL_NET_OUTBOUND, /* what the lists let through, see doc/NETWORK.md */
};

struct sb_control_create_opts {
	size_t size;
	/*
	 * Makes create idempotent: as long as the sandbox that was made with this key is there, the
	 * same key gives that one. With another request it is SB_E_CONFLICT. 1 to 128 characters of
	 * printable ASCII. NULL: a new sandbox each time.
	 */
	const char *key;
	const char *const *labels; /* "KEY=VALUE" */
	const char *base; /* the template that its workspace, or its machine, starts as; NULL: the
			     default of the place. SB_E_BASE_NOT_FOUND */
	double cpus;      /* 0: the default of the place; so are the others */
	uint64_t mem_mb, disk_mb;
	enum sb_control_network network;
	const char *const *allow, *const *deny;
	int64_t lifetime_ms; /* how long it may be active at a stretch: then it is paused */
};
#define SB_CONTROL_CREATE_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_control_create_opts) \
	}

enum sb_control_status { SB_CONTROL_STARTING, SB_CONTROL_UP, SB_CONTROL_EXITED };
/* "starting", "running", "exited" */
SB_API const char *sb_control_status_name(enum sb_control_status s);

struct sb_control_process {
	char id[SB_CONTROL_ID_MAX + 1];
	enum sb_control_status status;
	char address[SB_CONTROL_ADDRESS_MAX +
		1]; /* of its port, as this caller reaches it; or "" */
	bool has_exit;
	int exit_code; /* 128+n for a signal */
};

struct sb_control_launch_opts {
	size_t size;
	const char *sandbox;
	const char *binary; /* a path, or a name that is looked up there */
	const char *const *args;
	const char *const *env; /* "KEY=VALUE"; may hold secrets */
	int expose_port;        /* that it will listen on; 0: none */
	/*
	 * With a port: waits until it answers. When it does not in this time, or the process ends
	 * before, the launch fails (SB_E_TIMEOUT, SB_E_CHILD) and the process is ended. 0: answers
	 * at once, STARTING.
	 */
	int64_t ready_ms;
	double cpus; /* of this process; 0: no limit but the sandbox's */
	uint64_t mem_mb;
};
#define SB_CONTROL_LAUNCH_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_control_launch_opts) \
	}

struct sb_control_filter {
	size_t size;
	const char *const *labels; /* all must match */
};
#define SB_CONTROL_FILTER_INIT \
	{ \
		.size = sizeof(struct sb_control_filter) \
	}

/*
 * What is behind a control. `call` is never NULL and always has a deadline; requests have been
 * checked. Members may be NULL where said so, the capability is false then.
 */
struct sb_control_ops {
	unsigned version; /* SB_CONTROL_VERSION */
	const char *kind; /* "node" */
	int (*capabilities)(struct sb_control *c, const struct sb_control_call *call,
		struct sb_control_caps *out, struct sb_error *err);
	int (*create)(struct sb_control *c, const struct sb_control_create_opts *o,
		const struct sb_control_call *call, struct sb_control_sandbox *out,
		struct sb_error *err);
	int (*destroy)(struct sb_control *c, const char *id, bool force,
		const struct sb_control_call *call, struct sb_error *err);
	int (*get)(struct sb_control *c, const char *id, const struct sb_control_call *call,
		struct sb_control_sandbox *out, struct sb_error *err);
	int (*list)(struct sb_control *c, const struct sb_control_filter *f,
		const struct sb_control_call *call, struct sb_control_sandbox **out, size_t *out_n,
		struct sb_error *err);
	/* May be NULL, all three. */
	int (*launch)(struct sb_control *c, const struct sb_control_launch_opts *o,
		const struct sb_control_call *call, struct sb_control_process *out,
		struct sb_error *err);
	int (*kill)(struct sb_control *c, const char *id, const char *process, int sig,
		const struct sb_control_call *call, struct sb_error *err);
	int (*status)(struct sb_control *c, const char *id, const char *process,
		const struct sb_control_call *call, struct sb_control_process *out,
		struct sb_error *err);
	/* May be NULL, both. */
	int (*pause)(struct sb_control *c, const char *id, bool deep,
		const struct sb_control_call *call, struct sb_error *err);
	int (*resume)(struct sb_control *c, const char *id, const struct sb_control_call *call,
		struct sb_error *err);
	/* May be NULL. */
	int (*snapshot)(struct sb_control *c, const char *id, const char *name,
		const struct sb_control_call *call, struct sb_error *err);
	/* May be NULL. */
	int (*rollback)(struct sb_control *c, const char *id, const char *name,
		const struct sb_control_call *call, struct sb_error *err);
	/* `name` NULL: as it is now. May be NULL. */
	int (*fork)(struct sb_control *c, const char *id, const char *name,
		const struct sb_control_create_opts *o, const struct sb_control_call *call,
		struct sb_control_sandbox *out, struct sb_error *err);
	/*
	 * Goes on with what a controller that died left, and removes what it had begun and nobody
	 * has worked in (doc/CONTROL.md). May be NULL: nothing is ever left.
	 */
	int (*recover)(struct sb_control *c, const struct sb_control_call *call,
		struct sb_error *err);
	void (*close)(struct sb_control *c);
};

/* A maker of controls has this as the first member of its own struct; sb_control_close frees it. */
struct sb_control {
	const struct sb_control_ops *ops;
	char *name; /* for messages; owned, freed by sb_control_close after ops->close */
	struct sb_control_limits limits;
	struct sb_log log;
};

/*
 * Opens a control of this library: `kind` and "KEY=VALUE" options as a profile file has them
 * (sbctl(1), CONTROLS). Nobody is asked before the first call. `state_dir` NULL: the user's.
 */
struct sb_control_open_opts {
	size_t size;
	const char *name; /* its name in the file; for messages, and a part of what marks things as
			     its own */
	const char *kind;
	const char *const *options;
	const char *state_dir;
	struct sb_log log;
};
#define SB_CONTROL_OPEN_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_control_open_opts) \
	}
SB_API struct sb_control *sb_control_open(const struct sb_control_open_opts *o,
	struct sb_error *err);
/* The sandboxes stay as they are. NULL is allowed. */
SB_API void sb_control_close(struct sb_control *c);

/* Kinds, NULL-terminated; and whether a kind takes that option with that value (NULL: the names).
 */
SB_API const char *const *sb_control_kinds(void);
SB_API int sb_control_option_check(const char *kind, const char *key, const char *value,
	struct sb_error *err);

SB_API int sb_control_capabilities(struct sb_control *c, const struct sb_control_call *call,
	struct sb_control_caps *out, struct sb_error *err);
/*
 * Makes a sandbox, and answers when it is RUNNING. After a failure nothing is left, or what is left
 * is what the same key gives later. Also SB_E_MAX_SESSIONS, SB_E_BASE_NOT_FOUND, SB_E_CONFLICT.
 */
SB_API int sb_control_create(struct sb_control *c, const struct sb_control_create_opts *o,
	const struct sb_control_call *call, struct sb_control_sandbox *out, struct sb_error *err);
/*
 * Removes it with everything in it. SB_E_SANDBOX_NOT_FOUND when there is none: who tries again
 * takes that for success. `force`: also when its snapshots are held, or its place does not answer.
 */
SB_API int sb_control_destroy(struct sb_control *c, const char *id, bool force,
	const struct sb_control_call *call, struct sb_error *err);
SB_API int sb_control_get(struct sb_control *c, const char *id, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err);
/* In order of id; an array, freed with sb_control_list_free. `f` may be NULL. */
SB_API int sb_control_list(struct sb_control *c, const struct sb_control_filter *f,
	const struct sb_control_call *call, struct sb_control_sandbox **out, size_t *out_n,
	struct sb_error *err);
SB_API void sb_control_list_free(struct sb_control_sandbox *v, size_t n);

/*
 * Starts a program in the sandbox, in its workspace. It lives on when this process ends. It is
 * never tried twice: after SB_E_CLOSED or SB_E_TIMEOUT it may run or not. SB_E_SESSION_PAUSED.
 */
SB_API int sb_control_launch(struct sb_control *c, const struct sb_control_launch_opts *o,
	const struct sb_control_call *call, struct sb_control_process *out, struct sb_error *err);
/* `sig` 0: SIGTERM. Of one that has ended, success. SB_E_PROCESS_NOT_FOUND. */
SB_API int sb_control_kill(struct sb_control *c, const char *id, const char *process, int sig,
	const struct sb_control_call *call, struct sb_error *err);
SB_API int sb_control_status(struct sb_control *c, const char *id, const char *process,
	const struct sb_control_call *call, struct sb_control_process *out, struct sb_error *err);

/* Twice is the same as once. In a paused one nothing can be launched: SB_E_SESSION_PAUSED. */
SB_API int sb_control_pause(struct sb_control *c, const char *id, bool deep,
	const struct sb_control_call *call, struct sb_error *err);
SB_API int sb_control_resume(struct sb_control *c, const char *id,
	const struct sb_control_call *call, struct sb_error *err);

/* SB_E_SNAPSHOT_EXISTS, SB_E_SNAPSHOT_NOT_FOUND. A rollback to one that is not there does nothing.
 */
SB_API int sb_control_snapshot(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_call *call, struct sb_error *err);
SB_API int sb_control_rollback(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_call *call, struct sb_error *err);
/* Of `o` the key and the labels count (none: the source's). */
SB_API int sb_control_fork(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_create_opts *o, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err);
SB_API int sb_control_recover(struct sb_control *c, const struct sb_control_call *call,
	struct sb_error *err);

/*
 * An address: HOST:PORT with a name or an IPv4 address, [IPV6]:PORT, or unix:/PATH; the port is 1
 * to 65535. SB_E_INVAL says what is wrong with it.
 */
SB_API int sb_control_address_check(const char *address, struct sb_error *err);
/* "http://HOST:PORT", "https://HOST:PORT"; unix:/PATH as it is. A new text, or NULL. */
SB_API char *sb_control_address_url(const char *address, bool tls, struct sb_error *err);

/* Not of this library: what a shared object defines that is given to sbcontrol-check --plugin. */
SB_API struct sb_control *sb_control_plugin(const struct sb_control_open_opts *o,
	struct sb_error *err);

#endif
