/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_SNAPSHOT_H
#define SB_HOST_SNAPSHOT_H

#include <sb/host.h>

/*
 * Snapshots of a session. A storage without them gives SB_E_NO_SNAPSHOTS from every call here but
 * sb_host_turn_complete, once the session is known to exist (else SB_E_SESSION_NOT_FOUND). Names
 * are the short ones, never "dataset@name".
 */
enum sb_host_snap_kind {
	SB_HOST_SNAP_TURN,  /* <prefix>-NNNN by sb_host_turn_complete */
	SB_HOST_SNAP_NAMED, /* the caller's name */
	SB_HOST_SNAP_TOOL,  /* tool-<call>-<time>-<n> after a tool call */
	SB_HOST_SNAP_FORK,  /* fork-<n>: made to fork "now"; goes with its last fork */
	SB_HOST_SNAP_COLD,  /* cold-<n>: what a deep pause found; the next one builds on it */
	SB_HOST_SNAP_KINDS,
};
SB_API const char *sb_host_snap_kind_name(enum sb_host_snap_kind k);

struct sb_host_snapshot {
	char name[SB_HOST_NAME_MAX + 1];
	enum sb_host_snap_kind kind;
	uint64_t turn; /* turn_count of the session at that moment */
	uint64_t used; /* bytes only this snapshot keeps, as the storage says; 0 for a new one */
	uint64_t referenced; /* bytes visible in it; 0 where it was not asked */
	int64_t created_ns;
	unsigned holds;
	unsigned forks;                    /* sessions made from it */
	char parent[SB_HOST_NAME_MAX + 1]; /* the snapshot it came after; "" for none */
	bool current;                      /* the workspace stands on it */
	bool live;      /* just taken: processes had files open and were stopped for it */
	bool unchanged; /* just taken: nothing had changed since the one before it. At the end of a
			   turn it is that one, and nothing was taken */
	char *dataset;  /* the storage's name of it ("pool/sessions/id@name") */
};
SB_API void sb_host_snapshot_clear(struct sb_host_snapshot *s);
SB_API void sb_host_snapshots_free(struct sb_host_snapshot *v, size_t n);

/*
 * A snapshot with the caller's name: [A-Za-z0-9][A-Za-z0-9_.-]*, at most 255 bytes, not of the
 * reserved forms
 * (<prefix>-digits, tool-..., fork-...). ACTIVE, PAUSED, FAILED. SB_E_SNAPSHOT_EXISTS for a name in
 * use. It is the state of one moment: on overlay the session's processes stand still for it, on the
 * others the storage takes it at once.
 */
SB_API int sb_host_snapshot_create(struct sb_host *h, const char *id, const char *name,
	const struct sb_host_call *call, struct sb_host_snapshot *out, struct sb_error *err);

/*
 * Ends a turn: waits until no tool runs (new ones wait too), takes turn snapshot number turn_count
 * + 1, then drops turn snapshots beyond keep_turn. A turn that changed nothing takes none: `out` is
 * the last one, `unchanged`, with the number of this turn. ACTIVE. SB_E_TOOLS_IN_FLIGHT after
 * drain_timeout_ms, nothing taken. On a storage without snapshots it succeeds, waits for nobody,
 * counts nothing, and `out` has no name.
 */
SB_API int sb_host_turn_complete(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_host_snapshot *out, struct sb_error *err);

/* Oldest first. Any state but CREATING and DESTROYING. */
SB_API int sb_host_snapshot_list(struct sb_host *h, const char *id, const struct sb_host_call *call,
	struct sb_host_snapshot **out, size_t *out_n, struct sb_error *err);

/*
 * SB_E_SNAPSHOT_NOT_FOUND, SB_E_SNAPSHOT_HELD, SB_E_SNAPSHOT_IN_USE (forks). ACTIVE, PAUSED,
 * FAILED.
 */
SB_API int sb_host_snapshot_delete(struct sb_host *h, const char *id, const char *name,
	const struct sb_host_call *call, struct sb_error *err);

/*
 * A held snapshot is neither deleted nor dropped by retention nor lost by a rollback. Holding twice
 * with one tag and releasing are checked: SB_E_EXISTS, SB_E_HOLD_NOT_FOUND. ACTIVE, PAUSED, FAILED.
 */
SB_API int sb_host_snapshot_hold(struct sb_host *h, const char *id, const char *name,
	const char *tag, const struct sb_host_call *call, struct sb_error *err);
SB_API int sb_host_snapshot_release(struct sb_host *h, const char *id, const char *name,
	const char *tag, const struct sb_host_call *call, struct sb_error *err);

/*
 * Puts the workspace back to the snapshot. Newer snapshots stay, as a branch: the next one has the
 * target as its parent. With SB_HOST_DROP_LATER they are removed. ACTIVE or FAILED (one that is
 * paused is resumed first: SB_E_SESSION_PAUSED); the session is ACTIVE afterwards. Checked before
 * anything is touched: the target exists (SB_E_SNAPSHOT_NOT_FOUND), no snapshot that would go is
 * held (SB_E_SNAPSHOT_HELD) or forked (SB_E_SNAPSHOT_IN_USE), the storage can keep the others
 * (SB_E_UNSUPPORTED: ZFS cannot), no tool runs (SB_E_TOOLS_IN_FLIGHT, unless SB_HOST_KILL_TOOLS),
 * no other rollback runs. Then the session's processes are killed; its box stays, with the new
 * workspace in it. A storage failure after that leaves the session FAILED; a canceled or
 * interrupted rollback is finished by the host. `out` may be NULL.
 */
enum { SB_HOST_KILL_TOOLS = 1, SB_HOST_DROP_LATER = 2 };
struct sb_host_rolled {
	bool restarted; /* the box could not take the new workspace: the next command has a new
			   box */
	size_t kept, dropped; /* newer snapshots */
};
SB_API int sb_host_session_rollback(struct sb_host *h, const char *id, const char *name,
	unsigned how, const struct sb_host_call *call, struct sb_host_rolled *out,
	struct sb_error *err);

/*
 * A new session from a snapshot of `id`, or from now when `name` is NULL or "". `o->base` is
 * ignored; labels are those given, or the source's when `o->n_labels` is 0. Source ACTIVE, PAUSED
 * or FAILED.
 */
SB_API int sb_host_session_fork(struct sb_host *h, const char *id, const char *name,
	const struct sb_host_create_opts *o, const struct sb_host_call *call,
	struct sb_host_session *out, struct sb_error *err);

enum sb_host_change_kind {
	SB_HOST_ADDED,
	SB_HOST_REMOVED,
	SB_HOST_MODIFIED,
	SB_HOST_RENAMED, /* `from` is the old path */
};
SB_API const char *sb_host_change_name(enum sb_host_change_kind k);

struct sb_host_change {
	enum sb_host_change_kind kind;
	char type;  /* 'f' file, 'd' directory, 'l' symlink, 'o' other */
	char *path; /* from the workspace's root, raw bytes */
	char *from; /* RENAMED, else NULL */
	/* By sb_host_snapshot_contents: what is in the file, or the target of the symlink. */
	char *old_data, *new_data; /* NULL: not there, or not read */
	size_t old_len, new_len;
	const char *unread; /* why it was not read; NULL: it was, or has no content */
};
SB_API void sb_host_changes_free(struct sb_host_change *v, size_t n);

/*
 * What changed from snapshot `from` to snapshot `to` (NULL or "": now), sorted by path. `max`
 * bounds the list (0: 100000); more is `*out_more` = true. ACTIVE, PAUSED, FAILED.
 */
SB_API int sb_host_snapshot_diff(struct sb_host *h, const char *id, const char *from,
	const char *to, size_t max, const struct sb_host_call *call, struct sb_host_change **out,
	size_t *out_n, bool *out_more, struct sb_error *err);

/*
 * Reads what the changes of sb_host_snapshot_diff, made with the same `from` and `to`, are about:
 * files and symlinks as they were and as they are. A file of more than SB_HOST_CONTENT_MAX bytes,
 * and what comes after SB_HOST_CONTENTS_MAX bytes in all, is left out and says so.
 */
#define SB_HOST_CONTENT_MAX (1u << 20)
#define SB_HOST_CONTENTS_MAX (8u << 20)
SB_API int sb_host_snapshot_contents(struct sb_host *h, const char *id, const char *from,
	const char *to, const struct sb_host_call *call, struct sb_host_change *v, size_t n,
	struct sb_error *err);

/* Writes the snapshot (`from` not NULL: only what came after that one) as a stream to `fd`. */
SB_API int sb_host_snapshot_send(struct sb_host *h, const char *id, const char *name,
	const char *from, int fd, const struct sb_host_call *call, struct sb_error *err);
/* Makes a session from a stream read from `fd` to its end; `o->base` is ignored. */
SB_API int sb_host_session_receive(struct sb_host *h, const struct sb_host_create_opts *o, int fd,
	const struct sb_host_call *call, struct sb_host_session *out, struct sb_error *err);

#endif
