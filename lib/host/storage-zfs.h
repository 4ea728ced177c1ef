/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_STORAGE_ZFS_H
#define SB_HOST_STORAGE_ZFS_H

#include <host/zfs.h>

/*
 * Sessions are `<sessions>/<id>`. Beside them live names that no session can have: `_dead-...`, a destroyed session whose
 * snapshots forks still need, and `_view-...`, a clone made to read a snapshot.
 */
struct sb_storage_zfs {
	struct sb_storage st;
	struct sb_zfs z;
	char *pool, *bases, *sessions;
	char *root; /* mountpoint of `sessions` */
	int64_t transfer_ms;
	char instance[17]; /* marks the views of this process */
	atomic_uint n_views;
	atomic_bool graves; /* a _dead dataset may exist */
};

#define SB_STORAGE_ZFS_DEAD "_dead-"
#define SB_STORAGE_ZFS_VIEW "_view-"

/* How long a command that finds the dataset busy is repeated. */
#define SB_STORAGE_ZFS_BUSY_MS 10000

/* `<sessions>/<id>` or `<sessions>/<id>@<snap>`; NULL with SB_E_INVAL when ZFS would find it too long. */
char *sb_storage_zfs_name(const struct sb_storage_zfs *s, const char *id, const char *snap,
	struct sb_error *err);

/* Mounts `<sessions>/<id>` if it is not; the directory. */
int sb_storage_zfs_attach(struct sb_storage *st, const char *id, char **out, struct sb_error *err);

/* storage-zfs-list.c */
int sb_storage_zfs_list(struct sb_storage *st, const char *id, sb_storage_entry_fn fn, void *arg,
	struct sb_error *err);
int sb_storage_zfs_space(struct sb_storage *st, struct sb_storage_space *out, struct sb_error *err);
int sb_storage_zfs_used(struct sb_storage *st, const char *id, uint64_t *out, struct sb_error *err);
int sb_storage_zfs_bases(struct sb_storage *st, struct sb_strlist *out, struct sb_error *err);

/* storage-zfs-stream.c */
int sb_storage_zfs_diff(struct sb_storage *st, const char *id, const char *from, const char *to,
	const struct sb_host_call *call, struct sb_changes *out, struct sb_error *err);
int sb_storage_zfs_send(struct sb_storage *st, const char *id, const char *snap, const char *from, int fd,
	const struct sb_host_call *call, struct sb_error *err);
int sb_storage_zfs_receive(struct sb_storage_zfs *s, const char *dataset, int fd,
	const struct sb_host_call *call, struct sb_error *err);

#endif
