/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_STORAGE_BTRFS_PRIV_H
#define SB_HOST_STORAGE_BTRFS_PRIV_H

#include <pthread.h>

#include <host/storage/btrfs.h>
#include <host/storage/storage.h>

/*
 * `<root>/<id>` is the workspace of a session, a subvolume; `.snaps/<id>/<name>` its snapshots;
 * `.holds/<id>/<name>/<tag>` and `.quota/<id>` are files that say so. Other names with a dot in
 * front are work in progress, gone at the next start.
 */
struct sb_storage_btrfs {
	struct sb_storage st;
	struct sb_log log_to;
	char *root, *bases;
	int rootfd, snapsfd, holdsfd, quotafd, lockfd;
	int basesfd; /* -1: none */
	enum sb_host_durability durability;
	atomic_uint seq; /* names of work in progress */
};

#define SB_STORAGE_BTRFS_WORK ".work-"

/* A name for work in progress. */
const char *sb_storage_btrfs_work(struct sb_storage_btrfs *b, char out[40]);
/* The open workspace, or snapshot when `snap` is given. SB_E_NOTFOUND, SB_E_SNAPSHOT_NOT_FOUND. */
int sb_storage_btrfs_open_at(struct sb_storage_btrfs *b, const char *id, const char *snap,
	struct sb_error *err);
/* What was changed survives a power loss, unless nobody wants that. */
int sb_storage_btrfs_commit(struct sb_storage_btrfs *b, struct sb_error *err);
/* A read-only snapshot of the open subvolume as one of the session's. SB_E_SNAPSHOT_EXISTS. */
int sb_storage_btrfs_name(struct sb_storage_btrfs *b, int from, const char *id, const char *snap,
	struct sb_error *err);

/* storage-btrfs-list.c */
struct sb_storage_btrfs_snap {
	char *name;
	struct sb_btrfs_info info;
	unsigned holds;
};
/* The session's snapshots, oldest first. */
int sb_storage_btrfs_snaps(struct sb_storage_btrfs *b, const char *id,
	struct sb_storage_btrfs_snap **out, size_t *out_n, struct sb_error *err);
void sb_storage_btrfs_snaps_free(struct sb_storage_btrfs_snap *v, size_t n);
int sb_storage_btrfs_list(struct sb_storage *st, const char *id, sb_storage_entry_fn fn, void *arg,
	struct sb_error *err);
int sb_storage_btrfs_used(struct sb_storage *st, const char *id, uint64_t *out,
	struct sb_error *err);
int sb_storage_btrfs_unchanged(struct sb_storage *st, const char *id,
	char out[SB_HOST_NAME_MAX + 1], struct sb_error *err);
/* Notes that the workspace that is made at `work` comes from the session's snapshot. */
int sb_storage_btrfs_line(struct sb_storage_btrfs *b, const char *id, const char *work,
	const char *snap, struct sb_error *err);
uint64_t sb_storage_btrfs_quota(struct sb_storage_btrfs *b, const char *id);

/* storage-btrfs-hold.c */
int sb_storage_btrfs_hold(struct sb_storage *st, const char *id, const char *snap, const char *tag,
	struct sb_error *err);
int sb_storage_btrfs_release(struct sb_storage *st, const char *id, const char *snap,
	const char *tag, struct sb_error *err);
unsigned sb_storage_btrfs_holds(struct sb_storage_btrfs *b, const char *id, const char *snap);

/* storage-btrfs-diff.c */
int sb_storage_btrfs_diff(struct sb_storage *st, const char *id, const char *from, const char *to,
	const struct sb_host_call *call, struct sb_changes *out, struct sb_error *err);
int sb_storage_btrfs_look(struct sb_storage *st, const char *id, const char *from, const char *to,
	sb_storage_states_fn fn, void *arg, struct sb_error *err);

/* storage-btrfs-stream.c */
int sb_storage_btrfs_send(struct sb_storage *st, const char *id, const char *snap, const char *from,
	int fd, const struct sb_host_call *call, struct sb_error *err);
int sb_storage_btrfs_receive(struct sb_storage_btrfs *b, const char *id, int fd,
	const struct sb_host_call *call, struct sb_error *err);

#endif
