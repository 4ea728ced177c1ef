/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_H
#define SB_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/cancel.h>
#include <sb/error.h>
#include <sb/log.h>
#include <sb/strlist.h>

/*
 * The sandbox host: sessions with a workspace each, kept in a database beside the data. Every
 * function is thread-safe; operations of one session take turns, operations of different sessions
 * run in parallel. Snapshots are in sb/host-snapshot.h, tools and processes in sb/host-exec.h.
 *
 * Errors that any operation on a session may give: SB_E_SESSION_NOT_FOUND, SB_E_SESSION_PAUSED,
 * SB_E_SESSION_DESTROYING, SB_E_ROLLBACK_IN_PROGRESS, SB_E_INVALID_STATE (creating, failed),
 * SB_E_SHUTTING_DOWN, SB_E_INVAL (a bad id or name), SB_E_CANCELED, SB_E_TIMEOUT. Their messages
 * begin with the text of the code.
 */
struct sb_host;

/*
 * The states of a session. The wire knows six names (sb_host_state_wire): PAUSING and ROLLING_BACK
 * are "active" there, RESUMING and COOLING "paused", WARMING "cold".
 */
enum sb_host_state {
	SB_HOST_CREATING, /* recorded, storage not ready yet */
	SB_HOST_ACTIVE,
	SB_HOST_PAUSING, /* no new tool is admitted, running ones drain */
	SB_HOST_PAUSED,
	SB_HOST_RESUMING,
	SB_HOST_ROLLING_BACK, /* the target is recorded; a crash is followed by the same rollback */
	SB_HOST_DESTROYING,   /* nothing leads back */
	SB_HOST_FAILED,       /* only destroy and rollback lead out; `why` says what happened */
	SB_HOST_COOLING,      /* on its way to cold storage; a crash or cancel leaves it PAUSED */
	SB_HOST_COLD,         /* in cold storage, nothing is here (sb/host-cold.h) */
	SB_HOST_WARMING,      /* on its way back; a crash or cancel leaves it COLD */
	SB_HOST_STATES,
};

SB_API const char *sb_host_state_name(enum sb_host_state s);
SB_API const char *sb_host_state_wire(enum sb_host_state s);

/* Limits of what callers may ask for. */
#define SB_HOST_ID_MAX 128    /* bytes of a session id */
#define SB_HOST_NAME_MAX 255  /* bytes of a snapshot name or hold tag */
#define SB_HOST_LABELS_MAX 64 /* labels of a session */
#define SB_HOST_LABEL_KEY_MAX 128
#define SB_HOST_LABEL_VALUE_MAX 4096

struct sb_host_label {
	char *key;
	char *value;
};

/*
 * How long a call may take. NULL, or this zeroed but for `deadline` = SB_NEVER, waits without
 * limit.
 */
struct sb_host_call {
	const struct sb_cancel *cancel; /* may be NULL */
	sb_deadline deadline;
	uint64_t fence; /* see sb_host_session_fence; 0: none */
};

/*
 * What happened; `id` is borrowed for the call. Called without any lock held, from any thread, in
 * order of `seq` for one session. It must not block.
 */
struct sb_host_event {
	uint64_t seq;
	int64_t time_ns; /* Unix time */
	const char *
		kind; /* "session.created", "session.state", "session.destroyed", "session.forked",
			 "snapshot.created", "snapshot.deleted", "session.rolled_back", "tool.done",
			 "process.started", "process.ready", "process.exited", "health" */
	const char *session; /* NULL for "health" */
	const char
		*subject; /* snapshot name, process id, tool call id, other session; may be NULL */
	enum sb_host_state state; /* of the session after it */
};
typedef void (*sb_host_event_fn)(const struct sb_host_event *ev, void *arg);

/*
 * AUTO: ZFS or btrfs when the sessions' directory lies on one, else overlay, else local-disk, which
 * has no snapshots. A directory or a host that has sessions keeps their storage.
 */
enum sb_host_storage {
	SB_HOST_ZFS,
	SB_HOST_LOCAL_DISK,
	SB_HOST_OVERLAY,
	SB_HOST_BTRFS,
	SB_HOST_STORAGE_AUTO
};
SB_API const char *sb_host_storage_name(enum sb_host_storage s);
/* False for a name that is none. */
SB_API bool sb_host_storage_from(const char *name, enum sb_host_storage *out);
/*
 * What survives a power loss on overlay and btrfs. SNAPSHOT: sessions, and snapshots that were
 * reported. NONE: nothing is waited for. ALL: also what a program in a session has synced itself.
 */
enum sb_host_durability { SB_HOST_DURABLE_SNAPSHOT, SB_HOST_DURABLE_NONE, SB_HOST_DURABLE_ALL };
/*
 * In order of isolation. AUTO is the best of those that isolate and work here; where none does, the
 * host does not open (SB_E_UNSUPPORTED): NONE has to be written out.
 */
enum sb_host_runtime {
	SB_HOST_RUNTIME_NONE,
	SB_HOST_RUNTIME_BWRAP,
	SB_HOST_RUNTIME_GVISOR,
	SB_HOST_RUNTIME_AUTO
};
/*
 * What a session may reach: nothing but its own loopback; the network namespace the operator
 * prepared; all the host can; what its lists allow (doc/NETWORK.md).
 */
enum sb_host_network {
	SB_HOST_NET_DEFAULT,
	SB_HOST_NET_NONE,
	SB_HOST_NET_SANDBOX,
	SB_HOST_NET_HOST,
	SB_HOST_NET_OUTBOUND
};
SB_API const char *sb_host_runtime_name(enum sb_host_runtime r);
SB_API const char *sb_host_network_name(enum sb_host_network n);
/* False for a name that is none; "" is SB_HOST_NET_DEFAULT. */
SB_API bool sb_host_runtime_from(const char *name, enum sb_host_runtime *out);
SB_API bool sb_host_network_from(const char *name, enum sb_host_network *out);
/* What to do with a dataset or directory in the sessions' place that the database does not know. */
enum sb_host_orphans { SB_HOST_ORPHANS_ADOPT, SB_HOST_ORPHANS_REPORT, SB_HOST_ORPHANS_DESTROY };

/* Strings are copied by sb_host_open. */
/*
 * May who shows `authorization` (a header's value, "Bearer TOKEN") reach the ports of `session`?
 * `nonce` tells it from others that had its id.
 */
typedef bool (*sb_host_port_admit_fn)(const char *session, const char *nonce,
	const char *authorization, void *arg);

struct sb_host_opts {
	size_t size;
	enum sb_host_storage storage;
	enum sb_host_runtime runtime;
	const char *state_dir;         /* database and process logs; made 0700. Required */
	const char *pool;              /* zfs */
	const char *bases_dataset;     /* zfs: the only place base images are cloned from */
	const char *sessions_dataset;  /* zfs: sessions are its children. Made when missing */
	const char *sessions_root_dir; /* not zfs: sessions are in it. Made when missing. NULL with
					  AUTO: "sessions" in state_dir */
	const char *bases_dir; /* not zfs: base images are directories in it; NULL: no bases */
	const char *zfs_path, *zpool_path; /* NULL: looked up */
	bool sudo;                         /* run them by `sudo -n` */
	/*
	 * Where exposed ports are told to be: an address or name by which callers reach this
	 * machine. NULL: `bind_addr`, which must be no wildcard then.
	 */
	const char *advertise_addr;
	const char *snapshot_prefix; /* of turn snapshots */
	const char *default_base;    /* when a create names none; may be NULL */
	uint64_t default_quota;      /* bytes, 0: none */
	unsigned max_sessions;       /* 0: any number */
	unsigned keep_turn, keep_named,
		keep_tool; /* newest snapshots of a kind that are kept, 0: all */
	bool per_tool_snapshots;
	bool no_resume; /* do not resume at start what shutdown paused */
	enum sb_host_orphans orphans;
	double warn_at,
		critical_at; /* share of the storage in use; at `critical_at` creates are refused */
	int64_t tool_timeout_ms, drain_timeout_ms, shutdown_timeout_ms, health_interval_ms;
	int64_t storage_timeout_ms, transfer_timeout_ms; /* one storage command; send and receive */
	unsigned max_tools, max_processes;               /* of one session at a time */
	uint64_t max_log_bytes; /* of one process; the oldest half is dropped when passed */
	struct sb_log log;
	sb_host_event_fn on_event; /* may be NULL */
	void *event_arg;
	const char *rootfs; /* of sandboxes, read-only; NULL: this machine's own /usr */
	const char *box_path, *bwrap_path, *runsc_path; /* NULL: looked up */
	const char *runsc_platform;           /* NULL: the first that a probe finds working */
	const char *egress_resolver;          /* ADDRESS[:PORT] that is asked for the names of
						 sessions with SB_HOST_NET_OUTBOUND; NULL:
						 the resolvers of this machine */
	const char *sandbox_netns;            /* a prepared network namespace, for sessions with
						 SB_HOST_NET_SANDBOX */
	bool allow_host_network;              /* sessions of an isolating runtime may ask for it */
	enum sb_host_network default_network; /* when a create names none. DEFAULT: none where the
						 runtime isolates */
	double session_cpus; /* limits of everything in a sandbox together; 0: none */
	uint64_t session_mem_mb, session_pids, session_tmp_mb;
	enum sb_host_durability durability;
	/*
	 * Users (and groups) of this machine that nobody else is, for the files and processes of
	 * sessions of an isolating runtime, one for each while they last. Only where the host runs
	 * as root; a count of 0: everything belongs to the host's own user.
	 */
	uint32_t session_uid_first, session_uid_count;
	sb_host_port_admit_fn port_admit; /* needed for "token:"; thread-safe */
	void *port_admit_arg;
	/*
	 * Where exposed ports listen: an address of this machine, also a wildcard, which
	 * everybody there can reach; "token:ADDRESS", where `port_admit` decides who comes in by
	 * the token that a client shows in an HTTP head (CONNECT with Proxy-Authorization, see
	 * sbhostd(8)); or "unix:DIR" for a socket each in that directory, which only this user may
	 * use. NULL: `advertise_addr`, else 127.0.0.1.
	 */
	const char *bind_addr;
	/*
	 * How long a session may be active at a stretch, from its creation or its last resume; 0:
	 * for ever. Then the host pauses it, and tools that still run are killed; its files stay,
	 * and a resume begins another stretch. With `expire_destroys` it is destroyed instead,
	 * unless a snapshot of it is held. Event "session.expired".
	 */
	int64_t max_session_ms;
	bool expire_destroys;
	/*
	 * Cold storage (sb/cold.h): where, which part of it, its keys, bytes a second, sessions on
	 * their way at a time. NULL: this host has none. A session that was paused for
	 * `cold_after_ms` goes there by itself; 0: none does.
	 */
	const char *cold_store, *cold_space, *cold_key_file;
	uint64_t cold_rate;
	unsigned cold_transfers;
	int64_t cold_after_ms;
};
#define SB_HOST_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_host_opts), .storage = SB_HOST_STORAGE_AUTO, \
		.runtime = SB_HOST_RUNTIME_AUTO, .snapshot_prefix = "turn", .warn_at = 0.85, \
		.critical_at = 0.95, .tool_timeout_ms = 300000, .drain_timeout_ms = 30000, \
		.shutdown_timeout_ms = 30000, .health_interval_ms = 30000, \
		.storage_timeout_ms = 30000, .transfer_timeout_ms = 600000, .max_tools = 64, \
		.max_processes = 64, .max_log_bytes = 16 << 20, .session_mem_mb = 4096, \
		.session_pids = 1024, .session_tmp_mb = 512, .session_uid_first = 1879048192, \
		.session_uid_count = 65536, .cold_transfers = 2 \
	}

/*
 * Looks at what an open would use, without opening or making anything, and calls `found` for each
 * mistake: options, base images.
 */
SB_API void sb_host_check(const struct sb_host_opts *o, void (*found)(const char *what, void *arg),
	void *arg);

/*
 * Opens the host: checks the options, opens the database (SB_E_LOCKED when another process has it,
 * SB_E_VERSION when a newer program wrote it), probes the storage, finishes what a crash
 * interrupted.
 */
SB_API struct sb_host *sb_host_open(const struct sb_host_opts *opts, struct sb_error *err);

/* Starts the background work: health checks, retries of destroys, space figures. Once. */
SB_API int sb_host_start(struct sb_host *h, struct sb_error *err);

/*
 * Refuses new work (SB_E_SHUTTING_DOWN), drains tools for at most shutdown_timeout_ms, pauses every
 * active session (marked, so that the next open resumes it). Destroys nothing. Idempotent. The
 * begin of it, also by itself, refuses new work, ends the tools that only look, and waits for
 * nothing.
 * sb_host_close does not shut down: it waits for running calls, then frees; the sessions keep their
 * state.
 */
SB_API void sb_host_shutdown_begin(struct sb_host *h);
SB_API int sb_host_shutdown(struct sb_host *h, const struct sb_host_call *call,
	struct sb_error *err);
SB_API void sb_host_close(struct sb_host *h);

#define SB_HOST_NONCE_LEN 32

/* A session as it is now. Filled by the calls below; freed with sb_host_session_clear. */
struct sb_host_session {
	char id[SB_HOST_ID_MAX + 1];
	enum sb_host_state state;
	char *mountpoint;    /* "" while creating */
	char *base;          /* what it was made from; "" for an empty one */
	char *parent;        /* "session@snapshot" for a fork, else "" */
	char *why;           /* FAILED: the reason; else "" */
	uint64_t turn_count; /* number of the last turn; a fork goes on from its snapshot's */
	uint64_t snap_count;
	int64_t created_ns; /* Unix time */
	int64_t expires_ns; /* Unix time when max_session_ms is over; 0: never, or not now */
	struct sb_host_label *labels;
	size_t n_labels;
	uint64_t quota;      /* 0: none */
	uint64_t space_used; /* as last measured */
	unsigned active_tools;
	unsigned processes; /* running */
	enum sb_host_runtime runtime;
	enum sb_host_network network; /* as asked, or the default when it was made; never DEFAULT */
	char *policy; /* network outbound: a line "allow ENTRY" or "deny ENTRY" each; else "" */
	/*
	 * How often something in it was kept from the network, as far as the host can tell: by the
	 * policy since the host was opened, or (network none) for want of a network.
	 */
	uint64_t network_refused;
	char network_last[300]; /* outbound: the last of them and by what; or "" */
	/* Random, in hex: tells it from an earlier session of the same id. */
	char nonce[SB_HOST_NONCE_LEN + 1];
};
SB_API void sb_host_session_clear(struct sb_host_session *s);

/*
 * Whether a text can be the id of a session: a letter or digit, then letters, digits, '.', '_' and
 * '-', at most SB_HOST_ID_MAX bytes, no "..". SB_E_INVAL says why not.
 */
SB_API int sb_host_session_id_check(const char *id, struct sb_error *err);

/*
 * A fencing token: who takes a session over has a higher number than who had it before, gives it
 * with every call, and from the first of them on the host refuses calls for that id with a lower
 * one: SB_E_FENCED. So nobody who was replaced without knowing can change anything. The highest one
 * seen is on record, also after the session is destroyed (for 30 days). Calls with `fence` 0 are
 * not checked. This looks at a number and keeps it; an operation on a session looks again when its
 * turn comes (struct sb_host_call).
 */
SB_API int sb_host_session_fence(struct sb_host *h, const char *id, uint64_t fence,
	struct sb_error *err);

struct sb_host_create_opts {
	size_t size;
	const char *id;   /* NULL or "": a random one is made */
	const char *base; /* NULL or "": default_base; with none, zfs refuses and any other storage
			     starts empty */
	bool empty;       /* an empty workspace, no base */
	uint64_t quota;   /* 0: default_quota. local-disk cannot: SB_E_UNSUPPORTED */
	const struct sb_host_label *labels;
	size_t n_labels;
	/*
	 * What runs its commands; AUTO: the host's. One that isolates less than the host's is
	 * SB_E_DENIED, one that does not work here SB_E_UNSUPPORTED.
	 */
	enum sb_host_runtime runtime;
	/*
	 * A network the runtime cannot enforce refuses the session: SB_E_UNSUPPORTED; or the
	 * operator: SB_E_DENIED.
	 */
	enum sb_host_network network;
	/*
	 * What network outbound (which they stand for when `network` is DEFAULT) lets through, as
	 * doc/NETWORK.md writes it; no `allow`: every public address. SB_E_INVAL names the entry.
	 */
	const char *const *allow, *const *deny;
	size_t n_allow, n_deny;
};
#define SB_HOST_CREATE_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_host_create_opts), .runtime = SB_HOST_RUNTIME_AUTO \
	}

/*
 * Makes a session. Also SB_E_MAX_SESSIONS, SB_E_SESSION_EXISTS, SB_E_BASE_NOT_FOUND, SB_E_POOL_FULL
 * (admission), SB_E_DENIED (a base outside the bases). A destroy that comes in meanwhile wins:
 * SB_E_SESSION_DESTROYING.
 */
SB_API int sb_host_session_create(struct sb_host *h, const struct sb_host_create_opts *o,
	const struct sb_host_call *call, struct sb_host_session *out, struct sb_error *err);

/* Any state. `measure` asks the storage for space_used now instead of the last figure. */
SB_API int sb_host_session_get(struct sb_host *h, const char *id, bool measure,
	struct sb_host_session *out, struct sb_error *err);

struct sb_host_filter {
	size_t size;
	const struct sb_host_label *labels; /* all must match; an empty value matches any */
	size_t n_labels;
	unsigned states;   /* bit mask of 1 << state, 0: all */
	const char *after; /* ids greater than this */
	size_t limit;      /* 0: all */
};
#define SB_HOST_FILTER_INIT \
	{ \
		.size = sizeof(struct sb_host_filter) \
	}

/*
 * In order of id. `out` is an array of `out_n`, freed with sb_host_sessions_free. `f` may be NULL.
 */
SB_API int sb_host_session_list(struct sb_host *h, const struct sb_host_filter *f,
	struct sb_host_session **out, size_t *out_n, struct sb_error *err);
SB_API void sb_host_sessions_free(struct sb_host_session *v, size_t n);

/*
 * Pause: from ACTIVE. Admission stops at once, running tools drain; SB_E_TOOLS_IN_FLIGHT after
 * drain_timeout_ms (the session is active again). Processes are frozen. Resume: from PAUSED;
 * anything else is SB_E_INVALID_STATE.
 */
SB_API int sb_host_session_pause(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_error *err);
SB_API int sb_host_session_resume(struct sb_host *h, const char *id,
	const struct sb_host_call *call, struct sb_error *err);

/*
 * From any state, also while it is being created. Tools are drained for drain_timeout_ms, then
 * killed with all processes. Once it is recorded it cannot be taken back: after SB_E_CANCELED,
 * SB_E_TIMEOUT or a storage error the session stays DESTROYING and the host finishes it later. Two
 * callers both wait for the one destroy. With held snapshots: SB_E_SNAPSHOT_HELD and nothing
 * happens, unless `force`. Forks of the session live on.
 */
SB_API int sb_host_session_destroy(struct sb_host *h, const char *id, bool force,
	const struct sb_host_call *call, struct sb_error *err);

/* Replaces all labels. CREATING to PAUSED, FAILED. */
SB_API int sb_host_session_set_labels(struct sb_host *h, const char *id,
	const struct sb_host_label *labels, size_t n, struct sb_error *err);

/*
 * Replaces both lists of a session with network outbound, at once for what runs in it; nothing in
 * `allow`: nothing is reached. `cut` is how many connections ended by that. SB_E_INVALID_STATE for
 * another network, SB_E_INVAL names the entry that is wrong.
 */
SB_API int sb_host_network_set(struct sb_host *h, const char *id, const char *const *allow,
	size_t n_allow, const char *const *deny, size_t n_deny, size_t *cut, struct sb_error *err);

/*
 * Base images the storage offers, sorted: "name@snapshot" relative to bases_dataset, or directory
 * names.
 */
SB_API int sb_host_base_list(struct sb_host *h, struct sb_strlist *out, struct sb_error *err);

struct sb_host_capabilities {
	const char *storage, *runtime; /* "overlay", "zfs", ...; "none", ... */
	const char *storage_why;       /* why this storage and no other */
	bool snapshots, rollback, fork, diff, quota, send_receive;
	bool pause, streaming_progress, tier_routing;
	bool deep_pause;             /* there is cold storage, and the storage can go there */
	bool isolation;              /* false: the runtime isolates nothing */
	bool network_policy;         /* network none is enforced */
	bool network_lists;          /* so are the lists of network outbound */
	char network_why[256];       /* why they are not; "" else */
	bool ports;                  /* a session has ports of its own that can be exposed */
	const char *isolation_level; /* "none", "namespaces", "kernel" */
	/*
	 * What holds the limits of a session (pids, memory): "cgroup2", "cgroup1", "rlimit" (a
	 * limit of its user, and a watch over its memory) or "none"; the weaker of the two.
	 */
	const char *limits;
	unsigned concurrent_sessions; /* max_sessions; 0: any number */
	int64_t max_session_ms;       /* 0: for ever */
};
SB_API void sb_host_capabilities(const struct sb_host *h, struct sb_host_capabilities *out);

enum sb_host_health_status { SB_HOST_HEALTHY, SB_HOST_DEGRADED, SB_HOST_UNHEALTHY };
/*
 * Whether it takes new sessions: it is not shutting down, and its worker (sb_host_start) did not
 * find it unhealthy when it looked last. Answers at once.
 */
SB_API bool sb_host_health_ready(struct sb_host *h);
SB_API const char *sb_host_health_name(enum sb_host_health_status s);

#define SB_HOST_REASONS_MAX 8
struct sb_host_health {
	enum sb_host_health_status status;
	char pool_state[16];               /* "ONLINE", "DEGRADED", ...; "" for local-disk */
	const char *storage, *storage_why; /* as in the capabilities */
	uint64_t size, used, free;         /* bytes of the storage */
	double capacity;                   /* used share, 0..1 */
	double fragmentation;              /* 0..1, negative: unknown */
	uint64_t sessions, active_tools, processes;
	int64_t uptime_ms;
	char reasons[SB_HOST_REASONS_MAX][160]; /* why it is not healthy */
	size_t n_reasons;
	/* What else fits: sessions of max_sessions (0: any number; then free_sessions is 0, too).
	 */
	unsigned max_sessions, free_sessions;
	unsigned cpus; /* of the machine */
	uint64_t mem_mb, mem_free_mb;
};
/*
 * Asks the storage now. Never fails: a storage that does not answer is unhealthy with its reason.
 */
SB_API void sb_host_health(struct sb_host *h, const struct sb_host_call *call,
	struct sb_host_health *out);

/* Counted since open. */
struct sb_host_stats {
	uint64_t created, paused, resumed, destroyed, forked, adopted, recovered;
	uint64_t snapshots, snapshots_deleted, rollbacks, turns, tools, tool_errors,
		processes_launched;
	uint64_t storage_commands, storage_retries, storage_errors;
	uint64_t sessions[SB_HOST_STATES]; /* by state, now */
	uint64_t active_tools, running_processes;
};
SB_API void sb_host_stats(struct sb_host *h, struct sb_host_stats *out);

#endif
