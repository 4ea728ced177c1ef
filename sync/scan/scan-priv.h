/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SCAN_PRIV_H
#define SBSYNC_SCAN_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include <sync/tree/manifest.h>
#include <sync/scan/scan.h>

/* While a scan runs, `spare` of an entry holds these; it is 0 in what the caller gets. */
enum {
	SPARE_GONE = 1 << 0,   /* to be taken out of its directory at the end */
	SPARE_WANTED = 1 << 1, /* to be hashed by sb_scan_hash_wanted */
};

/* Files are read in pieces of this size; smaller ones in one read. */
#define SCAN_BUF ((size_t)256 << 10)
/* What one task of hashing holds at most, so that others find something to do. */
#define SCAN_BATCH_FILES 64
#define SCAN_BATCH_BYTES ((uint64_t)1 << 20)

/* What statx tells, in our units. */
struct sb_scan_stat {
	uint64_t dev;
	uint64_t ino;
	uint64_t size;
	int64_t mtime;
	int64_t ctime;
	int64_t taken; /* the coarse clock just before */
	uint32_t mode; /* with the type */
	uint32_t nlink;
	bool mount; /* a mount point */
};

/*
 * A directory that is being read or has children that nobody has taken yet. The chain of parents
 * gives its path. The descriptor stays open for the children only while there are few enough of
 * them; else they are opened by path. `refs`, `users`, `next` are guarded by the scan's mutex once
 * others can see the node.
 */
struct sb_scan_node {
	struct sb_scan_node *parent;
	struct sb_entry *entry;
	const struct sb_dir *cached; /* the same directory in the cache, or NULL */
	const struct sb_rules_node *rules;
	int fd;
	bool retained;  /* counted in the scan's `retained` */
	uint32_t refs;  /* children, tasks, the stack, workers on it */
	uint32_t users; /* of `fd` */
	uint32_t next;  /* the first entry of its directory that may be an untaken child */
};

/* Files first to last (not included) of a directory, to be hashed. */
struct sb_scan_task {
	struct sb_scan_node *node;
	uint32_t first;
	uint32_t last;
};

/* Wanted files, first to last (not included), of a directory known by its path. */
struct sb_scan_batch {
	char *path;
	struct sb_dir *dir;
	uint32_t first;
	uint32_t last;
};

/* One of several names of an inode. */
struct sb_scan_link {
	uint64_t dev;
	uint64_t ino;
	struct sb_entry *entry;
};

struct sb_scan_ctx {
	struct sb_scan_opts o;
	int rootfd; /* our own, opened again */
	struct sb_manifest *m;
	int64_t slack;
	unsigned retain_max;
	unsigned jobs;
	atomic_bool stop;
	atomic_uint_fast64_t entries;
	atomic_uint_fast64_t hashed_files;
	atomic_uint_fast64_t hashed_bytes;
	atomic_uint_fast64_t to_hash; /* bytes known to be wanted, hashed or not */
	atomic_uint_fast64_t removed; /* entries with SPARE_GONE */
	atomic_int_fast64_t next_progress;
	/* sb_scan_hash_wanted */
	struct sb_scan_batch *batches;
	size_t n_batches;
	size_t cap_batches;
	atomic_size_t next_batch;

	pthread_mutex_t mu; /* guards what follows */
	pthread_cond_t more;
	struct sb_scan_node **stack;
	size_t n_stack;
	size_t cap_stack;
	struct sb_scan_task *tasks;
	size_t n_tasks;
	size_t cap_tasks;
	unsigned active;
	unsigned waiting;
	unsigned retained;
	struct sb_skipped *skipped;
	size_t n_skipped;
	size_t cap_skipped;
	uint64_t n_specials;
	struct sb_strlist mounts;
	struct sb_scan_link *links;
	size_t n_links;
	size_t cap_links;
	int code; /* of the first failure */
	struct sb_error fail;
};

/* A name as the directory has it. */
struct sb_scan_item {
	uint64_t key; /* the first 8 bytes, for sorting */
	size_t off;   /* into the worker's names */
	uint16_t len;
	uint8_t type; /* DT_* */
};

/* An entry while its directory is being read. */
struct sb_scan_pending {
	struct sb_entry e;
	size_t off; /* of the name, with a symlink's target behind it */
	uint64_t dev;
	uint32_t nlink;
};

/* One thread's own. */
struct sb_scan_worker {
	struct sb_scan_ctx *c;
	struct sb_scan_node *start; /* what it begins with, or NULL */
	bool noatime;               /* still worth trying */
	uint8_t *buf;               /* SCAN_BUF bytes */
	XXH3_state_t *xxh;
	struct sb_buf names;
	struct sb_buf path;
	struct sb_scan_item *items;
	size_t n_items;
	size_t cap_items;
	struct sb_scan_pending *pending;
	size_t cap_pending;
};

/* scan.c */
int sb_scan_worker_init(struct sb_scan_worker *w, struct sb_scan_ctx *c);
void sb_scan_worker_free(struct sb_scan_worker *w);
/*
 * Runs `fn` in c->jobs threads, this one among them, with a worker each; the first starts with
 * `start`.
 */
int sb_scan_parallel(struct sb_scan_ctx *c, void (*fn)(struct sb_scan_worker *w),
	struct sb_scan_node *start);
/* Notes the first failure and stops everyone. */
void sb_scan_fail(struct sb_scan_ctx *c, int code, const struct sb_error *err);
void sb_scan_fail_memory(struct sb_scan_ctx *c);
void sb_scan_fail_at(struct sb_scan_ctx *c, int sys, const char *what, const char *dir,
	const char *name);
/* A path for a message: escaped, its beginning if it is long. Either part may be "". */
struct sb_scan_shown {
	char text[300];
};
const char *sb_scan_show(const char *dir, const char *name, struct sb_scan_shown *s);
/* True when it is time to end: failed, or canceled (which it notes). */
bool sb_scan_stopped(struct sb_scan_ctx *c);
void sb_scan_progress(struct sb_scan_ctx *c);
/* The same whatever the time. */
void sb_scan_tell(struct sb_scan_ctx *c);
/* Reports the entry `name` of the directory `dir` (both "": the root). */
void sb_scan_skip(struct sb_scan_ctx *c, const char *dir, const char *name, enum sb_skip_reason why,
	int sys);
/* Notes a mount point that is crossed. */
void sb_scan_note_mount(struct sb_scan_ctx *c, const char *path);
/* Marks an entry for removal. */
void sb_scan_drop(struct sb_scan_ctx *c, struct sb_entry *e);

/* scan-stat.c: negative errno on failure. `name` NULL: the descriptor itself. */
int sb_scan_stat(int fd, const char *name, struct sb_scan_stat *out);
/* The racy rule: could the file still change without its times telling? */
bool sb_scan_racy(const struct sb_scan_ctx *c, const struct sb_scan_stat *st);
/* How old a time must be; of all file systems the coarsest when mounts are crossed. */
int64_t sb_scan_slack(int rootfd, bool cross_mounts);
/* Takes what a manifest keeps of it; not the size of anything but files. */
void sb_scan_take_stat(const struct sb_scan_ctx *c, const struct sb_scan_stat *st,
	struct sb_entry *e);
/* Opens without following, blocking or touching the access time. Negative errno on failure. */
int sb_scan_open(struct sb_scan_worker *w, int dirfd, const char *name, int flags);
/*
 * A failure to open or stat that only means this one entry: gone (returns false), or skipped; else
 * the scan fails.
 */
bool sb_scan_explain(int sys, enum sb_skip_reason *out_why);

/* scan-walk.c: a worker's whole life in the walk. */
void sb_scan_walk(struct sb_scan_worker *w);
/* Frees what a stopped walk left. */
void sb_scan_walk_drain(struct sb_scan_ctx *c);
/*
 * scan-read.c: reads the directory open at n->fd into its entry. False: the scan has failed or the
 * directory is gone.
 */
bool sb_scan_read_dir(struct sb_scan_worker *w, struct sb_scan_node *n);
/* The path of a directory into w->path; false: out of memory (noted). */
bool sb_scan_node_path(struct sb_scan_worker *w, const struct sb_scan_node *n);

/* scan-hash.c */
bool sb_scan_wants_hash(const struct sb_scan_ctx *c, const struct sb_entry *e);
/* Hashes `e` in the directory `dirfd` whose path is `dir`; drops and reports it when it cannot. */
void sb_scan_hash_file(struct sb_scan_worker *w, int dirfd, const struct sb_scan_node *n,
	const char *dir, struct sb_entry *e);
/* Hashes every entry with SPARE_WANTED, by path, in parallel, and clears the mark. */
int sb_scan_hash_wanted(struct sb_scan_ctx *c);

/*
 * scan-links.c: groups the names of one inode; makes the members of each group agree, or drops
 * them.
 */
int sb_scan_group_links(struct sb_scan_ctx *c);
int sb_scan_settle_links(struct sb_scan_ctx *c);

#endif
