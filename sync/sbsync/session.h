/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_H
#define SBSYNC_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sbsync/sync.h>

/*
 * A session: one or more pairs of roots (here, there) that are kept in step from `start` to `stop`, with a base for
 * three-way decisions. All of it lives in a folder of the state directory, so that any later process can go on with it.
 */
enum sb_session_state {
	SB_SESSION_STARTING, /* made, first push not finished */
	SB_SESSION_ACTIVE,
	SB_SESSION_UNSYNCED, /* the last sync back failed: nothing may be thrown away over there */
	SB_SESSION_ORPHANED, /* its owner was gone; recovery has synced back */
	SB_SESSION_STOPPED,
};

enum sb_session_conflict {
	SB_SESSION_KEEP_BOTH,
	SB_SESSION_TAKE_LOCAL,
	SB_SESSION_TAKE_RUNTIME,
};

struct sb_session_pair {
	char *local;  /* absolute path */
	char *remote; /* as an endpoint text */
	uint8_t id[16]; /* names the state kept for the pair on both sides */
};

struct sb_session {
	char *name;
	enum sb_session_state state;
	uint8_t identity[16]; /* of the sandbox */
	struct sb_session_pair *pairs;
	size_t n_pairs;
	int64_t created;   /* seconds since the epoch */
	int64_t last_sync; /* 0: never */
	int64_t owner_pid; /* 0: none */
	uint64_t owner_start; /* start time of that process, in clock ticks since boot */
	uint32_t failures; /* recoveries in a row that failed */
	int64_t next_try;  /* not before */
	char *last_error;  /* of the last sync; NULL: it went well */
	/* How to reach the other side, as given at the start; used where a later call does not say otherwise. */
	int64_t port;
	char *identity_file, *ssh_config, *known_hosts, *rsh;
};

struct sb_session_list {
	struct sb_session *v;
	size_t n;
	size_t cap;
};

SB_API void sb_session_free(struct sb_session *s);
SB_API void sb_session_list_free(struct sb_session_list *l);
SB_API const char *sb_session_state_name(enum sb_session_state s);

/* Loads one by name, or by a directory inside one of its local roots when `name` is NULL. */
SB_API int sb_session_load(const char *state_dir, const char *name, const char *inside, struct sb_session *out,
	struct sb_error *err);
SB_API int sb_session_load_all(const char *state_dir, struct sb_session_list *out, struct sb_error *err);

/* Is the process that owns it alive? */
SB_API bool sb_session_owned(const struct sb_session *s);

struct sb_session_start {
	size_t size;
	const char *name;      /* NULL: made from the local directory's name */
	const char *const *also; /* further pairs "LOCAL:REMOTE-PATH", NULL-terminated; may be NULL */
	int64_t owner_pid;     /* 0: the parent process */
};
#define SB_SESSION_START_INIT { .size = sizeof(struct sb_session_start) }

/*
 * Opens a session and syncs to the runtime (reason start). SB_E_EXISTS when one of that name is open. When the push fails the session
 * stays as STARTING: `start` again goes on with it.
 */
SB_API int sb_session_start(const char *local, const char *remote, const struct sb_session_start *how,
	const struct sb_sync_opts *opts, enum sb_session_conflict policy, struct sb_session *out, struct sb_sync_result *res,
	struct sb_error *err);

enum sb_session_reason {
	SB_REASON_TURN,  /* both ways */
	SB_REASON_STOP,  /* back, then closed */
	SB_REASON_CRASH, /* back; the session is orphaned afterwards */
	SB_REASON_PUSH,  /* to the runtime only */
};

/* Syncs an open session. With opts.dry_run nothing changes and `res` lists what would. */
SB_API int sb_session_sync(struct sb_session *s, enum sb_session_reason reason, const struct sb_sync_opts *opts,
	enum sb_session_conflict policy, struct sb_sync_result *res, struct sb_error *err);

/* One session's outcome of a recovery. `result` is "done", "nothing", "owned", "later", "busy" or "failed". */
typedef void (*sb_recover_fn)(const struct sb_session *s, const char *result, const struct sb_sync_result *res,
	const struct sb_error *err, void *arg);

/*
 * Finishes what crashes interrupted: every open session whose owner is gone is synced back (reason crash); those that cannot be
 * reached are tried again next time, less and less often (`now`: at once). Returns how many failed.
 */
SB_API int sb_session_recover(const char *name, bool now, const struct sb_sync_opts *opts, sb_recover_fn fn, void *arg,
	struct sb_error *err);

/* Forgets a session and its state here. An open one only with `discard`. Touches neither tree. */
SB_API int sb_session_remove(struct sb_session *s, const char *state_dir, bool discard, struct sb_error *err);

/* The saved versions that still exist beside their files. */
SB_API int sb_session_conflicts(const struct sb_session *s, struct sb_sync_notes *out, struct sb_error *err);

/* Opens the session's log for reading: lines of JSON. Returns a descriptor. */
SB_API int sb_session_log_fd(const struct sb_session *s, struct sb_error *err);

#endif
