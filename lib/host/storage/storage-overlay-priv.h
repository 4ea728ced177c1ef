/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_STORAGE_OVERLAY_PRIV_H
#define SB_HOST_STORAGE_OVERLAY_PRIV_H

#include <pthread.h>
#include <time.h>

#include <base/cleanup.h>
#include <base/strlist.h>
#include <host/storage/overlay-capture.h>
#include <host/storage/overlay-mount.h>
#include <host/storage/overlay-state.h>
#include <host/storage/storage.h>

/* Thresholds of the compaction: layers in a stack, nameless nodes in a row. */
#define SB_STORAGE_OVERLAY_FLAT_AT 64
#define SB_STORAGE_OVERLAY_MERGE_AT 8

/* Lock order: `work_mu`, `mu`. The log is appended to, and the state changed, with `mu` held. */
struct sb_storage_overlay {
	struct sb_storage st;
	struct sb_log log_to;
	char *root, *mnt, *bases;
	char *base_place; /* see struct sb_overlay_mount */
	int rootfd, layersfd, trashfd, lockfd;
	int emptyfd; /* an empty directory: the base of sessions without one */
	int basesfd; /* -1: none */
	struct sb_storage_overlay_image *images; /* what is known of base images; `mu` */
	enum sb_host_durability durability;
	bool fast_sync; /* a sync of the log commits what is in the journal before it */

	pthread_mutex_t mu;
	struct sb_overlay_log *log;
	struct sb_overlay_state state;
	struct sb_overlay_u64s settle; /* layers that are no upper any more */
	int64_t clean_ns; /* when the log ended clean before this start; 0: it did not */
	bool broken;      /* the state is not what the log says: restart */
	bool merge_due;   /* names went away since the last look for layers to merge */
	bool stop, poke;
	pthread_cond_t cv;

	pthread_mutex_t work_mu; /* held for a round of the background work */
	pthread_t worker;
	bool worker_on;
	_Atomic unsigned flat_at, merge_at; /* thresholds of the compaction; tests change them */
};

/* A base image that was looked at. */
struct sb_storage_overlay_image {
	struct sb_storage_overlay_image *next;
	uint64_t ino;
	int64_t btime_ns;
	bool can; /* it can be shown as another user's */
};

/* What only this process knows of a session (sb_overlay_session.mine); changed by its operations.
 */
struct sb_storage_overlay_mine {
	struct sb_overlay_capture *capture; /* of its upper, NULL: none was taken */
	uint64_t capture_node;              /* where that copy is */
	struct timespec root_ctime;         /* of the upper's root, as it was mounted; 0: unknown */
	uint64_t used;                      /* as measured last */
	bool mounted;
};

/* storage-overlay.c */
struct sb_storage *sb_storage_overlay_open_as(const struct sb_host_opts *o, const char *boot,
	struct sb_error *err);
/* The session, or NULL with SB_E_NOTFOUND. With `mu` held. */
struct sb_overlay_session *sb_storage_overlay_find(struct sb_storage_overlay *o, const char *id,
	struct sb_error *err);
/* What this process knows of it, made when missing. */
struct sb_storage_overlay_mine *sb_storage_overlay_mine(struct sb_overlay_session *se,
	struct sb_error *err);
/* Appends the record and does what it says. With `mu` held. */
int sb_storage_overlay_record(struct sb_storage_overlay *o, const struct sb_overlay_rec *rec,
	struct sb_error *err);
/* What was recorded so far survives a power loss, unless nobody wants that. Without `mu`. */
int sb_storage_overlay_commit(struct sb_storage_overlay *o, struct sb_error *err);
/* A number for a new layer or node. Without `mu`. */
uint64_t sb_storage_overlay_new_id(struct sb_storage_overlay *o);
/*
 * A session without a base image on the node, recorded by `rec` (with its texts) and mounted. The
 * node is pinned by the caller. Without `mu`.
 */
int sb_storage_overlay_create_on(struct sb_storage_overlay *o, const char *id, uint64_t node,
	struct sb_overlay_rec *rec, struct sb_error *err);
/* Where the session is mounted: a new string. */
char *sb_storage_overlay_path(const struct sb_storage_overlay *o, const char *id);

/*
 * storage-overlay-boot.c: opens the directories, reads the log, and brings both in line; after a
 * power loss, sessions go back to what is known to be on the disk. `boot` NULL: the running one.
 */
int sb_storage_overlay_boot(struct sb_storage_overlay *o, const struct sb_host_opts *opts,
	const char *boot, struct sb_error *err);
/*
 * Whether an overlay with everything that is needed can be mounted here upon the directory `base`:
 * tried once, with a layer of that number, which goes. SB_E_UNSUPPORTED.
 */
int sb_storage_overlay_probe(struct sb_storage_overlay *o, uint64_t layer, int base,
	struct sb_error *err);

/*
 * storage-overlay-base.c: the base image of a session, as a descriptor that paths begin at; what is
 * in it belongs to `owner`, unless that is 0. The second one checks it against what was recorded.
 */
int sb_storage_overlay_base(struct sb_storage_overlay *o, const char *base, uid_t owner,
	uint64_t *ino, int64_t *btime_ns, struct sb_error *err);
/* `owner`, or 0 where the image cannot be shown as theirs, which is logged. Without `mu`. */
int sb_storage_overlay_base_replaced(const char *base, const char *id, struct sb_error *err);
uid_t sb_storage_overlay_base_owner(struct sb_storage_overlay *o, const char *base, uid_t owner);
int sb_storage_overlay_base_of(struct sb_storage_overlay *o, const struct sb_overlay_session *se,
	struct sb_error *err);
int sb_storage_overlay_bases(struct sb_storage *st, struct sb_strlist *out, struct sb_error *err);

/* storage-overlay-swap.c */
/* The upper, the layers below it and the base of a mount of the session. */
struct sb_storage_overlay_plan {
	uint64_t stack[SB_OVERLAY_LAYERS_MAX + 1];
	size_t n;
	int base;
};
/*
 * Makes an upper for a session on `node` (NULL: the base) and the list of its layers. Without `mu`;
 * the node is pinned by the caller. `base` is given over to the plan.
 */
int sb_storage_overlay_plan(struct sb_storage_overlay *o, struct sb_overlay_node *node, int base,
	int like, struct sb_storage_overlay_plan *out, struct sb_error *err);
void sb_storage_overlay_plan_clear(struct sb_storage_overlay_plan *p);
SB_CLEANUP_VALUE(sb_storage_overlay_plan, sb_storage_overlay_plan_clear)
/* Mounts what was planned where the session is, and notes what the upper looks like now. */
int sb_storage_overlay_enter(struct sb_storage_overlay *o, struct sb_overlay_session *se,
	const struct sb_storage_overlay_plan *p, struct sb_error *err);
int sb_storage_overlay_mount(struct sb_storage *st, const char *id, char **out,
	struct sb_error *err);
/*
 * Unmounts the session, on the host and in its box. 0: done; 1: somebody uses it, and all is as it
 * was. With `force` it goes anyway.
 */
int sb_storage_overlay_take_away(struct sb_storage_overlay *o, struct sb_overlay_session *se,
	const struct sb_storage_live *live, bool force, struct sb_error *err);
/* Into the box with what is mounted now. */
int sb_storage_overlay_give_back(struct sb_storage_overlay *o, struct sb_overlay_session *se,
	const struct sb_storage_live *live, struct sb_error *err);
/* A layer that was made and is not needed after all. */
void sb_storage_overlay_discard(struct sb_storage_overlay *o, uint64_t layer);
/* Whether the upper is as it was mounted: nothing was written. */
bool sb_storage_overlay_pristine(struct sb_storage_overlay *o, struct sb_overlay_session *se);

/* storage-overlay-snap.c */
int sb_storage_overlay_snapshot(struct sb_storage *st, const char *id, const char *snap,
	const struct sb_storage_live *live, struct sb_storage_taken *out, struct sb_error *err);
int sb_storage_overlay_unchanged(struct sb_storage *st, const char *id,
	char out[SB_HOST_NAME_MAX + 1], struct sb_error *err);
/* The layer of a new node is on the disk, and that is recorded. Without `mu`. */
int sb_storage_overlay_settle_node(struct sb_storage_overlay *o, uint64_t node,
	struct sb_error *err);

/* storage-overlay-names.c: rollback, and what changes names only. */
int sb_storage_overlay_rollback(struct sb_storage *st, const char *id, const char *snap,
	bool drop_later, const struct sb_storage_live *live, struct sb_error *err);
int sb_storage_overlay_delete(struct sb_storage *st, const char *id, const char *snap,
	struct sb_error *err);
int sb_storage_overlay_hold(struct sb_storage *st, const char *id, const char *snap,
	const char *tag, struct sb_error *err);
int sb_storage_overlay_release(struct sb_storage *st, const char *id, const char *snap,
	const char *tag, struct sb_error *err);

/* storage-overlay-list.c */
int sb_storage_overlay_list(struct sb_storage *st, const char *id, sb_storage_entry_fn fn,
	void *arg, struct sb_error *err);
int sb_storage_overlay_used(struct sb_storage *st, const char *id, uint64_t *out,
	struct sb_error *err);

/* storage-overlay-diff.c */
/* The state of a node as an open directory, read-only. Without `mu`, the node pinned. */
int sb_storage_overlay_open_state(struct sb_storage_overlay *o, const struct sb_overlay_session *se,
	const struct sb_overlay_node *node, struct sb_error *err);
int sb_storage_overlay_diff(struct sb_storage *st, const char *id, const char *from, const char *to,
	const struct sb_host_call *call, struct sb_changes *out, struct sb_error *err);

int sb_storage_overlay_look(struct sb_storage *st, const char *id, const char *from, const char *to,
	sb_storage_states_fn fn, void *arg, struct sb_error *err);

/* storage-overlay-stream.c */
int sb_storage_overlay_send(struct sb_storage *st, const char *id, const char *snap,
	const char *from, int fd, const struct sb_host_call *call, struct sb_error *err);
/* A session out of the stream `src->fd`. */
int sb_storage_overlay_receive(struct sb_storage_overlay *o, const char *id,
	const struct sb_storage_source *src, const struct sb_host_call *call, struct sb_error *err);

/* storage-overlay-work.c: the trash and the compaction, in the background. */
int sb_storage_overlay_work_start(struct sb_storage_overlay *o, struct sb_error *err);
void sb_storage_overlay_work_stop(struct sb_storage_overlay *o);
void sb_storage_overlay_poke(struct sb_storage_overlay *o);
/* A whole round now. 1: something is left. */
int sb_storage_overlay_sweep(struct sb_storage *st, struct sb_error *err);
/* Brings the node below the threshold of layers, now. Without `mu`. */
int sb_storage_overlay_flatten(struct sb_storage_overlay *o, uint64_t node, struct sb_error *err);

#endif
