/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SYNC_H
#define SBSYNC_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/cancel.h>
#include <sb/error.h>
#include <sb/log.h>

/*
 * The steps of a run, in their order. phases_ms of the result says how long each took, as the side
 * that controls the run sees it: every moment belongs to the one step its main thread is in. Scans,
 * writers and the other side work at the same time, so a step holds only what the run had to wait
 * for. A step that did not occur took 0 ms; pauses before another attempt belong to no step.
 */
enum sb_step {
	/* Reach the other side: connect, log in, start the agent (and bring it there if need be).
	 */
	SB_STEP_CONNECT,
	/*
	 * Read the local tree: open and lock it, finish an interrupted commit, walk, hash. What is
	 * read while the connection is made costs no time of its own.
	 */
	SB_STEP_SCAN,
	/* Learn the other side's tree. Includes the rest of its scan, which began with ours. */
	SB_STEP_EXCHANGE,
	/* Decide: compare the trees and find out how each change travels; the brake. */
	SB_STEP_PLAN,
	/*
	 * Send or receive contents. The receiver stages and verifies most of them meanwhile: all
	 * that is in time for the stream is counted here.
	 */
	SB_STEP_TRANSFER,
	/*
	 * Put what is new into the stage, beside the tree. Here: directories, links, copies, and
	 * waiting for the writers after the last byte came. The other side's is in transfer and
	 * commit.
	 */
	SB_STEP_STAGE,
	/*
	 * Compare what is staged with what was announced. Here: after the writers are done. The
	 * other side's is in commit, unless it asked for files again.
	 */
	SB_STEP_VERIFY,
	/* Make it visible: journal, renames, flushing to the disk; on the other side, its answer.
	 */
	SB_STEP_COMMIT,
	/* Keep what the next run starts from: base, scan cache, undo; take leave of the agent. */
	SB_STEP_RECORD,
	SB_STEPS, /* how many there are */
};

struct sb_progress {
	enum sb_step step;
	uint64_t files;       /* done so far */
	uint64_t files_total; /* 0: not known yet */
	uint64_t bytes;
	uint64_t bytes_total;
};

/* Called from any thread of the sync, a few times a second at most. */
typedef void (*sb_progress_fn)(const struct sb_progress *p, void *arg);

/* How safe against a power cut the result is; the default follows where the data came from. */
enum sb_sync_durability {
	SB_SYNC_DURABLE_DEFAULT,
	SB_SYNC_DURABLE_NONE,
	SB_SYNC_DURABLE_BARRIER,
	SB_SYNC_DURABLE_FULL,
};

#define SB_SYNC_LEVEL_AUTO (-1000)

struct sb_conn;

struct sb_sync_opts {
	size_t size;
	bool dry_run;           /* find out what would be done; change nothing */
	bool checksum;          /* read every file, trust no stat */
	bool gitignore;         /* honour .gitignore files */
	bool no_delta;          /* always send whole files */
	bool always_delta;      /* patches and deltas also between two local directories */
	bool cross_mounts;      /* go into other file systems */
	bool trust_git_config;  /* take changes of git's configuration and hooks from a sandbox */
	bool no_escaping_links; /* keep symlinks that lead out of the root aside */
	const char *const *exclude;      /* gitignore patterns, NULL-terminated; may be NULL */
	const char *const *exclude_from; /* files of patterns, likewise */
	int level;                       /* zstd level, 0: do not compress, SB_SYNC_LEVEL_AUTO */
	int64_t max_delete;              /* negative: see sbsync(1) */
	enum sb_sync_durability durability;
	unsigned jobs;      /* threads for scanning and writing; 0: by processors */
	int64_t timeout_ms; /* for the whole sync, with all its attempts; 0: none; a lost connection
			       is tried again for about a minute */
	int stall_ms;       /* a far side without a byte for this long is dead */
	uint64_t bwlimit;   /* bytes a second; 0: none */
	const char *state_dir; /* NULL: the default */
	const char *const
		*agent;  /* argv of the agent for a local pair; NULL: this program with "agent" */
	const char *rsh; /* remote shell command instead of the built-in SSH */
	int port;        /* 0: by configuration */
	const char *identity; /* key file */
	const char *ssh_config;
	const char *known_hosts;
	bool accept_new_host_key;
	const struct sb_cancel *cancel;
	struct sb_log log;
	sb_progress_fn progress;
	void *progress_arg;
	bool token_login;     /* log in with the user name alone: no key, no or an empty password */
	bool ask_password;    /* password and keyboard-interactive, asked for on the terminal */
	bool never_ask;       /* not even for the passphrase of a key */
	struct sb_conn *conn; /* an open connection to that host (sbsync/conn.h), used and kept;
				 NULL: one for this sync */
	bool trust_project_files; /* take changes of .sandbox.yaml, .sbsync.yaml and .sbsyncignore
				     from a sandbox: later runs obey them */
	uint64_t max_entries; /* how many entries a far tree may have; 0: by the tree that is here
				 and by the memory there is */
	bool xattrs;          /* carry extended attributes of users over */
	bool acls;            /* carry access control lists over */
};
#define SB_SYNC_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_sync_opts), .level = SB_SYNC_LEVEL_AUTO, \
		.max_delete = -1, .stall_ms = 30000 \
	}

/* A path and a word about it. */
struct sb_sync_note {
	char *path;
	char *saved_as; /* conflicts only */
	const char *why;
};

struct sb_sync_notes {
	struct sb_sync_note *v;
	size_t n;
	size_t cap;
};

/* What was done to one path, or would be (dry run). */
struct sb_sync_change {
	char *path;
	char *from;       /* moves and copies */
	const char *side; /* where: "local" or "runtime" */
	const char
		*what; /* "create", "update", "meta", "delete", "move", "copy", "link", "mkdir" */
	uint64_t size;
};

#define SB_SYNC_CHANGES_MAX 10000

struct sb_sync_result {
	const char *direction; /* "to_runtime", "from_runtime", "local" */
	const char *reason;
	uint64_t files_synced;
	uint64_t bytes_transferred; /* content, before compression */
	uint64_t bytes_wire_up;
	uint64_t bytes_wire_down;
	uint64_t round_trips; /* times the run waited for an answer of the agent, without connecting
			       */
	uint64_t reconnects;  /* times the run lost its connection and connected again */
	uint64_t files_deleted;
	uint64_t files_moved;
	uint64_t files_delta;
	uint64_t entries; /* in the synced tree */
	struct sb_sync_notes conflicts;
	struct sb_sync_notes skipped; /* never synced, or left as they are by the rules */
	struct sb_sync_notes
		errors; /* what the sync could not take: unreadable, or it kept changing. The rest
			   is synced, but the sync is not complete */
	struct sb_sync_notes auto_exec; /* synced, but tools run these by themselves */
	struct sb_sync_notes escaping_links;
	struct sb_sync_notes merged;    /* decided conflicts; `saved_as` is gone */
	struct sb_sync_change *changes; /* a dry run lists all; else the first SB_SYNC_CHANGES_MAX
					   of each way, without those that were left alone */
	size_t n_changes;
	int64_t duration_ms;
	int64_t phases_ms[SB_STEPS]; /* by enum sb_step */
	size_t n_planned;            /* the engine's own */
};

SB_API void sb_sync_result_free(struct sb_sync_result *r);
/* "connect", "scan", "exchange", "plan", "transfer", "stage", "verify", "commit", "record". */
SB_API const char *sb_step_name(enum sb_step step);

/*
 * Makes the tree at `dst` equal to the one at `src`, in this direction only. Each is a local path
 * or a remote one ([user@]host:path, ssh://...); at most one may be remote. Nothing visible changes
 * before everything has arrived and is verified. Fails with the codes of sb/error.h; a failure
 * loses nothing, and the next run goes on where this one stopped. SB_E_BRAKE: it would delete too
 * much. SB_E_LOCKED: another sync works on `dst`.
 */
SB_API int sb_sync_mirror(const char *src, const char *dst, const struct sb_sync_opts *opts,
	struct sb_sync_result *out, struct sb_error *err);

/* Serves a controller on stdin and stdout: what `sbsync agent` does. */
SB_API int sb_sync_agent(int in_fd, int out_fd, const struct sb_cancel *cancel,
	struct sb_error *err);

#endif
