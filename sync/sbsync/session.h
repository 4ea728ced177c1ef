/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_H
#define SBSYNC_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/strlist.h>
#include <sbsync/sync.h>

/*
 * A session: one or more pairs of roots (here, there) that are kept in step from `start` to `stop`,
 * with a base for three-way decisions. All of it lives in a folder of the state directory, so that
 * any later process can go on with it.
 */
enum sb_session_state {
	SB_SESSION_STARTING, /* on record, first push not finished */
	SB_SESSION_ACTIVE,
	SB_SESSION_UNSYNCED, /* the last sync back failed: do not throw the runtime away */
	SB_SESSION_ORPHANED, /* its owner was gone; recovery syncs back, each time */
	SB_SESSION_STOPPED,
};

/* What a sync does with a path that both sides changed. */
enum sb_session_conflict {
	SB_SESSION_AS_STARTED = -1, /* the policy that the session was started with */
	SB_SESSION_KEEP_BOTH,
	SB_SESSION_TAKE_LOCAL,
	SB_SESSION_TAKE_RUNTIME,
	SB_SESSION_MERGE, /* merges texts that merge cleanly over the base; else keeps both */
};

/* For the paths that match (gitignore syntax); of several, the last one counts. */
struct sb_session_rule {
	char *pattern;
	enum sb_session_conflict how;
};

struct sb_session_pair {
	char *local;    /* absolute path */
	char *remote;   /* as an endpoint text */
	uint8_t id[16]; /* names the state kept for the pair on both sides */
};

struct sb_session {
	char *name;
	enum sb_session_state state;
	uint8_t identity[16]; /* of the sandbox */
	struct sb_session_pair *pairs;
	size_t n_pairs;
	int64_t created;      /* seconds since the epoch */
	int64_t last_sync;    /* 0: never */
	int64_t owner_pid;    /* 0: none */
	uint64_t owner_start; /* start time of that process, in clock ticks since boot */
	uint32_t failures;    /* recoveries in a row that failed */
	int64_t next_try;     /* not before */
	int64_t heartbeat;    /* when the owner last gave a sign of life; 0: never */
	enum sb_session_conflict conflict;
	struct sb_session_rule *rules;
	size_t n_rules;
	char *last_error; /* of the last sync; NULL: it went well */
	/*
	 * The route to the other side that the session was started with. Later calls use it where
	 * their options do not say otherwise.
	 */
	int64_t port;
	char *identity_file, *ssh_config, *known_hosts, *rsh;
	int64_t paused;           /* since when; 0: it is not. Only a stop syncs then */
	struct sb_strlist labels; /* "KEY=VALUE" */
};

struct sb_session_list {
	struct sb_session *v;
	size_t n;
	size_t cap;
	struct sb_strlist bad; /* a line about each session that cannot be read: damaged, or of a
				  newer version */
};

SB_API void sb_session_free(struct sb_session *s);
SB_API void sb_session_list_free(struct sb_session_list *l);
SB_API const char *sb_session_state_name(enum sb_session_state s);

/* Loads one by name, or by a directory inside one of its local roots when `name` is NULL. */
SB_API int sb_session_load(const char *state_dir, const char *name, const char *inside,
	struct sb_session *out, struct sb_error *err);
SB_API int sb_session_load_all(const char *state_dir, struct sb_session_list *out,
	struct sb_error *err);

/*
 * Is the owner of the session alive? An owner process counts while it runs. An owner elsewhere
 * (`owner_pid` 0) counts for SB_SESSION_HEARTBEAT_S seconds after its last sign of life: every sync
 * is one, and an owner that syncs less often calls sb_session_beat.
 */
#define SB_SESSION_HEARTBEAT_S 120
SB_API bool sb_session_owned(const struct sb_session *s);
SB_API int sb_session_beat(const struct sb_session *s, const char *state_dir, struct sb_error *err);

/* "KEY=VALUE" of letters, digits and "._-/", then anything printable. */
SB_API bool sb_session_label_ok(const char *label);

/* What sb_session_edit changes; what is not said stays. */
struct sb_session_edit {
	size_t size;
	int pause; /* 1: nothing syncs it until it is resumed (0); -1: as it is. The base stays */
	enum sb_session_conflict conflict; /* SB_SESSION_AS_STARTED: as it is */
	const char *const *conflict_rules; /* all of them, as for the start; NULL: as they are */
	const char *const *labels;         /* "KEY=VALUE" sets, "KEY=" removes; NULL: none */
	int64_t port;                      /* 0: by configuration; -1: as it is */
	const char *identity_file, *ssh_config, *known_hosts, *rsh; /* "": none any more */
};
#define SB_SESSION_EDIT_INIT \
	{ \
		.size = sizeof(struct sb_session_edit), .pause = -1, \
		.conflict = SB_SESSION_AS_STARTED, .port = -1 \
	}

/*
 * Changes an open session's settings; they count from its next sync on. SB_E_LOCKED while a sync is
 * under way, SB_E_STATE for one that is stopped.
 */
SB_API int sb_session_edit(struct sb_session *s, const char *state_dir,
	const struct sb_session_edit *e, struct sb_error *err);

/* The process that watches the session (sb_session_watch); 0: none does. */
SB_API int64_t sb_session_watcher(const struct sb_session *s, const char *state_dir);
/* A descriptor for what a process prints that watches in the background: watch.log, empty. */
SB_API int sb_session_watch_log_fd(const struct sb_session *s, const char *state_dir,
	struct sb_error *err);

struct sb_session_start {
	size_t size;
	const char *name; /* NULL: made from the local directory's name */
	const char *const
		*also;     /* further pairs "LOCAL:REMOTE-PATH", NULL-terminated; may be NULL */
	int64_t owner_pid; /* 0: the parent process; SB_SESSION_NO_OWNER: none, its heartbeat counts
			    */
	const char *const *conflict_rules; /* "PATTERN=both|local|runtime|merge", NULL-terminated;
					      may be NULL */
	const char *const *labels;         /* "KEY=VALUE", likewise */
};
#define SB_SESSION_NO_OWNER (-1)
#define SB_SESSION_START_INIT \
	{ \
		.size = sizeof(struct sb_session_start) \
	}

/*
 * Opens a session and syncs to the runtime (reason start). SB_E_EXISTS when one of that name is
 * open. When the push fails the session stays as STARTING: `start` again goes on with it; one whose
 * other side was never reached is forgotten at once.
 */
SB_API int sb_session_start(const char *local, const char *remote,
	const struct sb_session_start *how, const struct sb_sync_opts *opts,
	enum sb_session_conflict policy, struct sb_session *out, struct sb_sync_result *res,
	struct sb_error *err);

enum sb_session_reason {
	SB_REASON_TURN,  /* both ways */
	SB_REASON_STOP,  /* back, then closed */
	SB_REASON_CRASH, /* back; the session is orphaned afterwards */
	SB_REASON_PUSH,  /* to the runtime only */
};

/* Syncs an open session. With opts.dry_run nothing changes and `res` lists what would. */
SB_API int sb_session_sync(struct sb_session *s, enum sb_session_reason reason,
	const struct sb_sync_opts *opts, enum sb_session_conflict policy,
	struct sb_sync_result *res, struct sb_error *err);

struct sb_session_watch {
	size_t size;
	int64_t every_ms; /* sync this often even if nothing seems to change */
	/* Called after each sync; may be NULL. */
	void (*on_sync)(const struct sb_session *s, int code, const struct sb_sync_result *res,
		const struct sb_error *err, void *arg);
	void *arg;
};
#define SB_SESSION_WATCH_INIT \
	{ \
		.size = sizeof(struct sb_session_watch), .every_ms = 60000 \
	}

/*
 * Keeps both sides in step until opts.cancel is requested (then 0): syncs in both directions
 * whenever something changes here or there, over one connection. Logs lost connections, full disks
 * and the like through opts.log and tries again; ends with the error where somebody has to decide
 * (the brake, another sandbox).
 */
SB_API int sb_session_watch(struct sb_session *s, const struct sb_session_watch *how,
	const struct sb_sync_opts *opts, enum sb_session_conflict policy, struct sb_error *err);

/* "both", "local", "runtime", "merge"; false: none of them. */
SB_API bool sb_session_conflict_of(const char *name, enum sb_session_conflict *out);
SB_API const char *sb_session_conflict_name(enum sb_session_conflict c);

/*
 * One session's outcome of a recovery. `result` is "done", "nothing", "owned", "later", "busy",
 * "away" (its work was brought before, and it cannot be reached now), "paused" or "failed".
 */
/* `s` is NULL for a session that cannot be read. */
typedef void (*sb_recover_fn)(const struct sb_session *s, const char *result,
	const struct sb_sync_result *res, const struct sb_error *err, void *arg);

/*
 * Finishes what crashes interrupted: syncs every open session back whose owner is gone (reason
 * crash), again and again until it is stopped. One that it cannot reach waits for a later call,
 * longer after each failure (`now`: not at all). Returns how many failed. SB_E_LOCKED when `name`
 * is NULL and another such call is under way.
 */
SB_API int sb_session_recover(const char *name, bool now, const struct sb_sync_opts *opts,
	sb_recover_fn fn, void *arg, struct sb_error *err);

/*
 * Forgets a session and its state here. An open one only with `discard`, unless its start never
 * came through. Touches neither tree.
 */
SB_API int sb_session_remove(struct sb_session *s, const char *state_dir, bool discard,
	struct sb_error *err);

/* A version that lost its place in a conflict and still lies beside it. */
struct sb_session_saved {
	char *root;     /* local root */
	char *path;     /* in it */
	char *saved_as; /* in it */
	int64_t when;
	uint64_t size;
	const char *why;
	uint8_t base[16]; /* digest of the base; zero: not known */
	uint16_t base_mode;
};

struct sb_session_saved_list {
	struct sb_session_saved *v;
	size_t n;
};
SB_API void sb_session_saved_free(struct sb_session_saved_list *l);
SB_API int sb_session_conflicts(const struct sb_session *s, const char *state_dir,
	struct sb_session_saved_list *out, struct sb_error *err);

enum sb_session_take {
	SB_TAKE_LOCAL,   /* the version in place stays */
	SB_TAKE_RUNTIME, /* the saved version takes the place */
	SB_TAKE_MERGED,  /* the clean merge of both, where there is one */
};

/*
 * Decides conflicts on the local side; the next sync carries the decision over. `path` (absolute)
 * names one conflict by its file or its saved version; NULL decides all. `res->merged` lists the
 * decided ones, `res->conflicts` the others. SB_E_NOTFOUND when `path` is no conflict.
 */
SB_API int sb_session_resolve(struct sb_session *s, const char *path, enum sb_session_take take,
	const struct sb_sync_opts *opts, struct sb_sync_result *res, struct sb_error *err);

/*
 * Takes the local side back to its state before the last run that changed it (sync, stop, recover,
 * resolve, undo: so a second call undoes the first). A file that was edited since stays and is a
 * conflict, with the old version beside it. SB_E_NOTFOUND: there is nothing to undo.
 */
SB_API int sb_session_undo(struct sb_session *s, const struct sb_sync_opts *opts,
	struct sb_sync_result *res, struct sb_error *err);

/*
 * The exclude patterns of a session, for pair `k`. patterns.v[i] comes from sources.v[i]
 * ("session": of the start or of sb_session_ignore; "file": of --exclude-from; "gitignore",
 * "sbsyncignore": of such a file in dirs.v[i] at the last run; "gitexclude": of git's info/exclude
 * or core.excludesFile for the working tree dirs.v[i]). The caller frees it.
 */
struct sb_session_ignored_list {
	struct sb_strlist patterns, sources, dirs;
};
SB_API int sb_session_ignored(const struct sb_session *s, const char *state_dir, size_t k,
	struct sb_session_ignored_list *out, struct sb_error *err);
SB_API void sb_session_ignored_free(struct sb_session_ignored_list *l);
/*
 * Adds a pattern to the session's own, or takes one away (SB_E_NOTFOUND), from the next run on.
 * Deletes nothing on either side: what is excluded now stays where it is, what no longer is is
 * compared anew.
 */
SB_API int sb_session_ignore(const struct sb_session *s, const char *state_dir, const char *pattern,
	bool add, struct sb_error *err);

/* A run that undo can take back. */
struct sb_session_undo_run {
	uint64_t run;     /* its number: when it was, in ns since the epoch */
	char reason[16];  /* "turn", "stop", "crash", "resolve", "undo"; "" when not known */
	uint64_t changed; /* files that it put or changed */
	uint64_t deleted; /* files and whole directories that it deleted */
};

struct sb_session_undo_runs {
	struct sb_session_undo_run *v; /* the newest first */
	size_t n;
};
SB_API void sb_session_undo_runs_free(struct sb_session_undo_runs *l);
SB_API int sb_session_undo_list(const struct sb_session *s, const char *state_dir,
	struct sb_session_undo_runs *out, struct sb_error *err);

/*
 * Takes back all runs that were at `to` (ns since the epoch) or later, as one; 0: the last.
 * SB_E_NOTFOUND: there is none.
 */
SB_API int sb_session_undo_to(struct sb_session *s, uint64_t to, const struct sb_sync_opts *opts,
	struct sb_sync_result *res, struct sb_error *err);

/* Opens the session's log for reading: lines of JSON. Returns a descriptor. */
SB_API int sb_session_log_fd(const struct sb_session *s, struct sb_error *err);

#endif
