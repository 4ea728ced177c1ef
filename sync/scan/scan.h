/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SCAN_H
#define SBSYNC_SCAN_H

#include <sb/cancel.h>
#include <base/strlist.h>
#include <sb/log.h>
#include <sync/scan/rules.h>
#include <sync/tree/manifest.h>

struct sb_scan_opts {
	size_t size;
	const struct sb_manifest *cache; /* an earlier scan with stat fields, or NULL; only read */
	struct sb_rules *rules;          /* NULL: nothing is excluded */
	bool collect_sbsyncignore;       /* read .sbsyncignore files into `rules` while walking */
	bool collect_gitignore;          /* likewise .gitignore */
	bool checksum;                   /* hash every file, whatever the cache says */
	uint64_t lazy_below; /* files smaller than this and not in the cache stay SB_ENTRY_UNHASHED;
				0: hash all */
	bool cross_mounts;   /* default: mount points inside the root are skipped and reported */
	/*
	 * Mount points that earlier scans crossed, or NULL. One where nothing is mounted now is
	 * SB_SKIP_MOUNT, whatever is there: what is out of sight is not deleted.
	 */
	const struct sb_strlist *mounts;
	unsigned jobs; /* 0: as many as processors, at most 8 */
	const struct sb_cancel *cancel;
	struct sb_log log;
	/*
	 * May be NULL; any thread, a few times a second and at the end. `to_hash` is what is known
	 * to need hashing, the bytes that are hashed included: it grows while the walk goes on.
	 */
	void (*progress)(uint64_t entries, uint64_t hashed_bytes, uint64_t to_hash, void *arg);
	void *progress_arg;
};
#define SB_SCAN_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_scan_opts) \
	}

enum sb_skip_reason {
	SB_SKIP_SPECIAL,    /* socket, fifo, device */
	SB_SKIP_MOUNT,      /* another file system */
	SB_SKIP_UNREADABLE, /* permission denied */
	SB_SKIP_UNSTABLE,   /* kept changing while we read it */
	SB_SKIP_NAME,       /* a name the protocol cannot carry */
};

struct sb_skipped {
	char *path;
	enum sb_skip_reason reason;
	int sys; /* errno where there was one */
};

struct sb_scan {
	struct sb_manifest *manifest; /* finished unless files are unhashed */
	struct sb_skipped *skipped;
	size_t n_skipped;
	uint64_t n_specials;   /* counted, the first 1000 are listed */
	uint64_t hashed_files; /* read because the cache did not know them */
	uint64_t hashed_bytes;
	uint64_t unhashed;        /* left for later (lazy_below) */
	struct sb_strlist mounts; /* mount points that were crossed */
};

/*
 * Walks the tree beneath `rootfd` in parallel, by directory descriptors, following no symlink, and
 * makes its manifest. Excluded entries do not appear. Never synced: SB_STAGE_NAME in the root and
 * `*.lock` files directly inside any `.git` directory. Each file is stat'ed before and after it is
 * hashed; one that moved is tried again, twice, then left out as SB_SKIP_UNSTABLE. A cached digest
 * is taken when dev, inode, size, mtime, ctime and mode are the same and the cached entry is not
 * racy. An unreadable directory or file is left out and reported as skipped: the caller must not
 * take it for deleted. What turns into something else meanwhile (a directory into a symlink) is
 * SB_SKIP_UNSTABLE, as are the names of one inode that do not agree. A file or directory that
 * vanishes during the walk is simply not there. Any other failure (EIO, ENOMEM, EMFILE) fails the
 * scan as a whole. Does not change access times where the system allows (O_NOATIME tried). The
 * result is the caller's: sb_scan_free.
 */
int sb_scan_run(int rootfd, const struct sb_scan_opts *opts, struct sb_scan *out,
	struct sb_error *err);
void sb_scan_free(struct sb_scan *s);
SB_CLEANUP_VALUE(sb_scan, sb_scan_free)

/*
 * Hashes the files that a lazy scan left unhashed (all, or those `want` says) and finishes the
 * manifest; its id means something once none is left. Other names of a hashed inode get the digest
 * too. One that changed since the scan has its new state then; one that is gone or cannot be read
 * leaves the manifest. After a failure it may be called again.
 */
int sb_scan_hash_rest(int rootfd, const struct sb_scan_opts *opts, struct sb_scan *s,
	bool (*want)(const char *path, const struct sb_entry *e, void *arg), void *arg,
	struct sb_error *err);

const char *sb_scan_skip_text(enum sb_skip_reason r);
/*
 * Does it mean that content was left out that should be synced? The other reasons never sync, by
 * design.
 */
bool sb_scan_skip_is_loss(enum sb_skip_reason r);

#endif
