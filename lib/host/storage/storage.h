/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_STORAGE_H
#define SB_HOST_STORAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/strlist.h>
#include <host/storage/changes.h>
#include <sb/host-snapshot.h>
#include <sb/host.h>

/*
 * Where the workspaces of sessions live. The caller has checked all names (idcheck.h). Several
 * threads may call at once, but never two for one session. Nobody cancels a change half-way: a call
 * waits for what it began, at most storage_timeout_ms, and every change can be repeated.
 */
struct sb_storage;

/*
 * What a new workspace is made of: exactly one of `base`, `from_id`, `fd` or none of them (empty).
 */
struct sb_storage_source {
	const char *base;
	const char *from_id, *from_snap;
	int fd; /* a stream to receive; -1: none */
	uint64_t quota;
	/*
	 * Whom what comes from `base` is to belong to; 0: as it is there. A storage that can do
	 * that without touching every file does; the owner of the workspace's directory tells.
	 */
	uid_t owner;
};

/*
 * One line of a listing: a session (snap == NULL), then its snapshots, oldest first. Borrowed for
 * the call.
 */
struct sb_storage_entry {
	const char *id;
	const char *snap;
	int64_t created_s;
	uint64_t used, referenced, quota;
	unsigned holds;
	const char *origin_id, *origin_snap; /* of a fork of a session; else NULL */
	const char *mountpoint;              /* sessions only */
	const char *parent; /* of a snapshot: the one before it, NULL where nobody knows or none is;
			       of a session: the one it stands on */
};
/* Two states of a workspace as open directories, for the call only; nothing is written there. */
typedef int (*sb_storage_states_fn)(int old_dir, int new_dir, void *arg, struct sb_error *err);
typedef int (
	*sb_storage_entry_fn)(const struct sb_storage_entry *e, void *arg, struct sb_error *err);

struct sb_storage_space {
	uint64_t size, used, free;
	double capacity, fragmentation; /* 0..1; fragmentation negative: unknown */
	char state[16];                 /* pool state, "" where there is none */
};

/*
 * What the runtime of a session does for its storage while the workspace is exchanged under it. A
 * NULL of this struct: nothing of the session runs, and no box has the workspace.
 */
struct sb_storage_live {
	void *arg;
	/* Stops everything in the session, or lets it go on. */
	int (*freeze)(void *arg, bool freeze, struct sb_error *err);
	/*
	 * Takes the workspace out of the box. 0: it is out (or there is no box); 1: somebody inside
	 * uses it, and it is as it was. With `force` it goes whoever uses it.
	 */
	int (*detach)(void *arg, bool force, struct sb_error *err);
	/* Puts what is at `path` on the host into the box as its workspace. */
	int (*attach)(void *arg, const char *path, struct sb_error *err);
};

/* How a snapshot came to be. */
struct sb_storage_taken {
	bool live;  /* processes had files of the workspace open; it was copied while they stood */
	bool empty; /* nothing had changed since the snapshot before it */
};

struct sb_storage_counters {
	atomic_ullong commands, retries, errors;
};

struct sb_storage_ops {
	unsigned version;
	const char *name;
	bool snapshots; /* the members marked (s) are there */
	bool quota;

	void (*close)(struct sb_storage *st);

	/*
	 * Makes the workspace; `out` is its directory. SB_E_EXISTS when there is one,
	 * SB_E_BASE_NOT_FOUND, SB_E_DENIED. On failure nothing is left, or sb_storage_ops.destroy
	 * removes it.
	 */
	int (*create)(struct sb_storage *st, const char *id, const struct sb_storage_source *src,
		const struct sb_host_call *call, char **out_mountpoint, struct sb_error *err);
	/*
	 * Removes it with its snapshots. Not there is success. Data that forks need is kept aside
	 * until they go.
	 */
	int (*destroy)(struct sb_storage *st, const char *id, struct sb_error *err);
	/* Makes sure the workspace can be used (mounted) and gives its directory. SB_E_NOTFOUND. */
	int (*mount)(struct sb_storage *st, const char *id, char **out_mountpoint,
		struct sb_error *err);
	/* Everything, or one session when `id` is given (SB_E_NOTFOUND). */
	int (*list)(struct sb_storage *st, const char *id, sb_storage_entry_fn fn, void *arg,
		struct sb_error *err);
	/*
	 * Removes left-overs: half-made workspaces, data kept aside that nobody needs any more. 1:
	 * some are busy, try later.
	 */
	int (*sweep)(struct sb_storage *st, struct sb_error *err);
	int (*used)(struct sb_storage *st, const char *id, uint64_t *out, struct sb_error *err);
	int (*space)(struct sb_storage *st, struct sb_storage_space *out, struct sb_error *err);
	int (*bases)(struct sb_storage *st, struct sb_strlist *out, struct sb_error *err);

	/*
	 * (s) SB_E_SNAPSHOT_EXISTS; SB_E_SNAPSHOT_NOT_FOUND, SB_E_SNAPSHOT_HELD,
	 * SB_E_SNAPSHOT_IN_USE.
	 */
	int (*snapshot)(struct sb_storage *st, const char *id, const char *snap,
		struct sb_error *err);
	int (*snapshot_delete)(struct sb_storage *st, const char *id, const char *snap,
		struct sb_error *err);
	/* (s) The storage's own name of a snapshot. */
	char *(*snapshot_name)(struct sb_storage *st, const char *id, const char *snap);
	/* (s) Drops later snapshots too. */
	int (*rollback)(struct sb_storage *st, const char *id, const char *snap,
		struct sb_error *err);
	/* (s) SB_E_EXISTS; SB_E_HOLD_NOT_FOUND. */
	int (*hold)(struct sb_storage *st, const char *id, const char *snap, const char *tag,
		struct sb_error *err);
	int (*release)(struct sb_storage *st, const char *id, const char *snap, const char *tag,
		struct sb_error *err);
	/* (s) `to` NULL: now. Adds to the list. */
	int (*diff)(struct sb_storage *st, const char *id, const char *from, const char *to,
		const struct sb_host_call *call, struct sb_changes *out, struct sb_error *err);
	/* (s) Opens the states that diff compares, and hands them to `fn`. */
	int (*look)(struct sb_storage *st, const char *id, const char *from, const char *to,
		sb_storage_states_fn fn, void *arg, struct sb_error *err);
	/*
	 * (s) Writes a snapshot to `fd`, from where it is to its end: a file, pipe or socket. With
	 * `from`, only what came after that snapshot, which `snap` must stand on (SB_E_INVAL: send
	 * it whole). The session may run and change meanwhile, and the snapshot may not go: who
	 * calls holds its slot or a hold on it. A failed or canceled send leaves a part of a stream
	 * behind that no receive takes.
	 *
	 * What can be received: sb_storage_ops.create with `fd` reads to the end of it.
	 *
	 * - overlay and btrfs write one format (overlay-stream.h), and each takes the other's. A
	 *   stream is one part, and parts may follow each other without anything in between: the
	 *   first is a whole one, each later one is, too, or stands on one that came before it.
	 *   The session has a snapshot for each, with its name and time, the oldest first, and its
	 *   workspace is the last one. A whole part has the base image, too: the session needs
	 *   none. Owners, modes,
	 *   times, extended attributes, symlinks, hard links within a part, FIFOs and sockets are
	 *   kept; devices are refused. Each part ends with its checksum. Whatever is wrong
	 *   (SB_E_CORRUPT, SB_E_INVAL, SB_E_LIMIT for more than 99 parts, a full disk), nothing of
	 *   the session is there afterwards. What a reported create received survives a power loss,
	 *   unless durability is none.
	 * - zfs writes and takes what `zfs send` does, whole streams only: an incremental one can
	 *   be sent, and `receive` reads it. Only zfs takes these.
	 * - Holds, parents of other branches, quotas and what changed since the last snapshot are
	 *   not in a stream.
	 */
	int (*send)(struct sb_storage *st, const char *id, const char *snap, const char *from,
		int fd, const struct sb_host_call *call, struct sb_error *err);

	/*
	 * (s) Adds a snapshot that was sent with `from` to a workspace that create made of what was
	 * sent before, and that nobody has used; it stands on it then. NULL: create takes all of
	 * them in one stream.
	 */
	int (*receive)(struct sb_storage *st, const char *id, int fd,
		const struct sb_host_call *call, struct sb_error *err);

	/*
	 * (s) As `snapshot`, of a session that may run; `live` and `out` may be NULL. May be NULL:
	 * the storage needs no help for that.
	 */
	int (*snapshot_live)(struct sb_storage *st, const char *id, const char *snap,
		const struct sb_storage_live *live, struct sb_storage_taken *out,
		struct sb_error *err);
	/*
	 * (s) As `rollback`, with the box alive. Later snapshots stay unless `drop_later`. May be
	 * NULL: the storage can only drop them.
	 */
	int (*rollback_live)(struct sb_storage *st, const char *id, const char *snap,
		bool drop_later, const struct sb_storage_live *live, struct sb_error *err);
	/*
	 * (s) 1: nothing changed since the newest snapshot the workspace stands on, whose name goes
	 * to `out`; 0: something did, or nobody knows. May be NULL.
	 */
	int (*unchanged)(struct sb_storage *st, const char *id, char out[SB_HOST_NAME_MAX + 1],
		struct sb_error *err);
};

/* Each backend's struct begins with this. */
struct sb_storage {
	const struct sb_storage_ops *ops;
	struct sb_storage_counters counters;
};

/*
 * Opens the storage of `o->storage`. AUTO: what is in the sessions' directory already, ZFS or btrfs
 * where it lies on one, else overlay, else local-disk; `o` is changed to what was chosen, `keep`
 * owns the new texts, and `why` says why. A directory with another storage's sessions is refused
 * (SB_E_INVAL).
 */
#define SB_STORAGE_WHY_MAX 256
struct sb_storage *sb_storage_open(struct sb_host_opts *o, struct sb_strlist *keep, int lock_fd,
	char why[SB_STORAGE_WHY_MAX], struct sb_error *err);

/*
 * Opens the backend `o` names; makes its places where they are missing. `lock_fd` is inherited by
 * every helper process, so that a lock on it lasts until the last of them ended.
 */
struct sb_storage *sb_storage_zfs_open(const struct sb_host_opts *o, int lock_fd,
	struct sb_error *err);
/*
 * Whether its places for base images are there, and `o->default_base` is; makes nothing.
 * SB_E_BASE_NOT_FOUND, or why it cannot be told.
 */
int sb_storage_zfs_check(const struct sb_host_opts *o, struct sb_error *err);
int sb_storage_local_check(const struct sb_host_opts *o, struct sb_error *err);
struct sb_storage *sb_storage_local_open(const struct sb_host_opts *o, struct sb_error *err);
/* Both SB_E_UNSUPPORTED with the reason where this machine or file system cannot. */
struct sb_storage *sb_storage_overlay_open(const struct sb_host_opts *o, struct sb_error *err);
struct sb_storage *sb_storage_btrfs_open(const struct sb_host_opts *o, struct sb_error *err);

#endif
