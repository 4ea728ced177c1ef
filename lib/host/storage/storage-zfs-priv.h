/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_STORAGE_ZFS_PRIV_H
#define SB_HOST_STORAGE_ZFS_PRIV_H

#include <pthread.h>

#include <base/strmap.h>
#include <host/storage/zfs.h>

/*
 * What the files of the storage "zfs" share. The dataset of a session is `<sessions>/<id>`. When
 * forks still need the snapshots of a destroyed session, or ZFS does not let go of it yet, its
 * dataset stays where it is, unmounted and marked dead: to rename it, ZFS would unmount its forks,
 * too. A new session of that id gets `_2-<id>`, `_3-<id>` and so on. No session can have the names
 * `_view-...` (a clone made to read a snapshot) and `_dead-...` (made by earlier versions).
 */
struct sb_storage_zfs {
	struct sb_storage st;
	struct sb_zfs z;
	char *pool, *bases, *sessions;
	char *root;   /* mountpoint of `sessions` */
	int claim_fd; /* holds the lock of sb_claim_lock */
	int64_t transfer_ms;
	char instance[17]; /* marks the views of this process */
	atomic_uint n_views;
	atomic_bool graves;       /* something may be there for the sweep */
	pthread_mutex_t sweep_mu; /* held for a whole sweep; before `mu` */
	pthread_mutex_t mu;       /* guards the maps */
	struct sb_strmap dead;    /* last components marked dead, each to "1" */
	struct sb_strmap
		moved; /* ids to the last component of the dataset, where that is not the id */
};

#define SB_STORAGE_ZFS_DEAD "_dead-"
#define SB_STORAGE_ZFS_VIEW "_view-"

/* How long a command that finds the dataset busy is repeated. */
#define SB_STORAGE_ZFS_BUSY_MS 10000

/*
 * The session's dataset, or its snapshot; NULL with SB_E_NOTFOUND, or SB_E_INVAL when ZFS would
 * find it too long.
 */
char *sb_storage_zfs_name(struct sb_storage_zfs *s, const char *id, const char *snap,
	struct sb_error *err);
/* Whether `<root>/<leaf>` is a mount of its own. */
bool sb_storage_zfs_mounted(const struct sb_storage_zfs *s, const char *leaf);

/* Mounts `<sessions>/<id>` if it is not; the directory. */
int sb_storage_zfs_mount(struct sb_storage *st, const char *id, char **out, struct sb_error *err);

/* storage-zfs-grave.c */
/*
 * The last component of the session's dataset, "" when there is only a dead one; NULL without
 * memory.
 */
char *sb_storage_zfs_leaf(struct sb_storage_zfs *s, const char *id);
/* The id of the session whose dataset ends in `leaf`. */
const char *sb_storage_zfs_id(const char *leaf);
/* Finds a name for the dataset of a new session, and forgets one that was not used or is gone. */
int sb_storage_zfs_claim(struct sb_storage_zfs *s, const char *id, struct sb_error *err);
void sb_storage_zfs_unclaim(struct sb_storage_zfs *s, const char *id);
/* Destroys a dataset with its snapshots, or unmounts it; again for `busy_ms` while it is busy. */
int sb_storage_zfs_remove(struct sb_storage_zfs *s, const char *ds, int64_t busy_ms,
	struct sb_error *err);
int sb_storage_zfs_unmount(struct sb_storage_zfs *s, const char *ds, int64_t busy_ms,
	struct sb_error *err);
/*
 * Marks an unmounted dataset dead; with `forks`, removes the snapshots that none needs. Can be
 * repeated.
 */
int sb_storage_zfs_bury(struct sb_storage_zfs *s, const char *id, const char *leaf, bool forks,
	struct sb_error *err);
/* Reads what the last run left. */
int sb_storage_zfs_load_marks(struct sb_storage_zfs *s, struct sb_error *err);
int sb_storage_zfs_sweep(struct sb_storage *st, struct sb_error *err);

/* storage-zfs-list.c */
int sb_storage_zfs_list(struct sb_storage *st, const char *id, sb_storage_entry_fn fn, void *arg,
	struct sb_error *err);
int sb_storage_zfs_space(struct sb_storage *st, struct sb_storage_space *out, struct sb_error *err);
int sb_storage_zfs_used(struct sb_storage *st, const char *id, uint64_t *out, struct sb_error *err);
int sb_storage_zfs_bases(struct sb_storage *st, struct sb_strlist *out, struct sb_error *err);

/* storage-zfs-stream.c */
int sb_storage_zfs_diff(struct sb_storage *st, const char *id, const char *from, const char *to,
	const struct sb_host_call *call, struct sb_changes *out, struct sb_error *err);
int sb_storage_zfs_look(struct sb_storage *st, const char *id, const char *from, const char *to,
	sb_storage_states_fn fn, void *arg, struct sb_error *err);
int sb_storage_zfs_send(struct sb_storage *st, const char *id, const char *snap, const char *from,
	int fd, const struct sb_host_call *call, struct sb_error *err);
int sb_storage_zfs_receive_next(struct sb_storage *st, const char *id, int fd,
	const struct sb_host_call *call, struct sb_error *err);
int sb_storage_zfs_receive(struct sb_storage_zfs *s, const char *dataset, int fd,
	const struct sb_host_call *call, struct sb_error *err);

#endif
