/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_ZFS_H
#define SB_HOST_ZFS_H

#include <base/buf.h>
#include <host/storage/storage.h>

/* The longest name ZFS takes, dataset and snapshot together. */
#define SB_ZFS_NAME_MAX 255

/* Runs the programs `zfs` and `zpool` and understands what they say. */
struct sb_zfs {
	char *zfs, *zpool; /* paths or names */
	bool sudo;
	bool modern; /* OpenZFS 0.8 or later: -p everywhere, zfs diff, .zfs/snapshot */
	int lock_fd;
	const char *nudge; /* a dataset of ours whose property may be set to make the pool write;
			      NULL: none */
	int64_t timeout_ms;
	struct sb_log log;
	struct sb_storage_counters *counters;
};

/*
 * The file a bare program name stands for, looked up once instead of at every start; the name
 * itself when it is nowhere.
 */
char *sb_zfs_find(const char *name);

/*
 * Finds out what the programs can do; once. SB_E_UNSUPPORTED when they are not there,
 * SB_E_UNAVAILABLE when ZFS is not running.
 */
int sb_zfs_probe(struct sb_zfs *z, struct sb_error *err);

/*
 * Runs `zfs ARGS` (`zpool` when `pool`) without a shell; `args` ends with NULL. Standard output
 * goes to `out` (may be NULL). A failure is classified by what the program says: SB_E_NOTFOUND,
 * SB_E_EXISTS, SB_E_STORAGE_BUSY, SB_E_DENIED, SB_E_POOL_FULL, SB_E_NOSPACE, SB_E_SNAPSHOT_IN_USE,
 * SB_E_HOLD_NOT_FOUND, SB_E_UNAVAILABLE, SB_E_INVAL, else SB_E_STORAGE.
 */
int sb_zfs_run(const struct sb_zfs *z, bool pool, const char *const *args, struct sb_buf *out,
	struct sb_error *err);

/*
 * The same, again and again while the answer is SB_E_STORAGE_BUSY, for at most `busy_ms`. `mounted`
 * is where the file system is that the command unmounts, or NULL; before every attempt zfs-fuse
 * gets the time to hear of closed files.
 */
int sb_zfs_run_patient(const struct sb_zfs *z, const char *const *args, const char *mounted,
	int64_t busy_ms, struct sb_error *err);

/*
 * Runs `zfs ARGS` with a descriptor as its input (`in`) or output (`out`), -1 for none; `call` ends
 * it early.
 */
int sb_zfs_stream(const struct sb_zfs *z, const char *const *args, int in, int out,
	int64_t timeout_ms, const struct sb_host_call *call, struct sb_error *err);

/* The class of a failed command; `text` is its standard error. */
int sb_zfs_classify(int exit_code, const char *text);

/* "11.0M", "1.5T", "4096", "-": bytes; false when it is not a size. */
bool sb_zfs_parse_size(const char *s, uint64_t *out);
/* "1%", "1", "-": whole percents as a share of 1; "-" is negative. */
bool sb_zfs_parse_percent(const char *s, double *out);
/* Undoes the \NNNN (octal) of zfs diff in place. */
void sb_zfs_unescape(char *s);

/* Calls `fn` for each line of `text` (changed: fields cut at tabs), at most `max` fields. */
typedef int (*sb_zfs_line_fn)(char **field, size_t n, void *arg, struct sb_error *err);
int sb_zfs_lines(char *text, size_t max, sb_zfs_line_fn fn, void *arg, struct sb_error *err);

#endif
