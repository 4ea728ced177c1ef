/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RECEIVE_INT_H
#define SBSYNC_RECEIVE_INT_H

#include <pthread.h>

#include <sync/replica/receive.h>

/*
 * Shared by receive.c (plan), receive-data.c (stream), receive-write.c (writers) and
 * receive-commit.c.
 */

#define SB_RECV_SMALL (1u << 20) /* up to this a file is written by a worker, in one piece */

enum rec_state {
	REC_PENDING,
	REC_OK,
	REC_BAD,     /* written, but not the content that was announced */
	REC_DROPPED, /* the sender could not read it */
};

/* What became of one staged file. Guarded by the pool's lock while writers run. */
struct rec {
	struct sb_digest got;
	struct sb_digest want; /* zero: not known yet */
	uint64_t ino;
	int64_t ctime;
	uint8_t state;
	bool unreadable; /* dropped for want of permission */
};

#define REC_BLOCK 4096u

/* A file whose bytes are to come, or that is made from something here. */
struct item {
	char *path;   /* beneath the root */
	char *staged; /* beneath "new" */
	uint32_t rec;
	uint16_t mode;
	bool has_row;
	bool has_data;
	bool dropped;
	uint64_t size;
	int64_t mtime;
};

struct items {
	struct item *v;
	size_t n;
	size_t cap;
	size_t data_at; /* the next one the stream must bring */
	size_t row_at;  /* the next one to get its row */
};

/* A staging directory kept open; counted. */
struct dirh {
	char *path;
	int fd;
	unsigned refs;
	uint64_t used;
};

#define DIRH_MAX 32

enum job_kind {
	JOB_WRITE, /* `data` */
	JOB_CLONE, /* from `from` beneath `fromfd` */
};

struct job {
	enum job_kind kind;
	struct dirh *dir;
	char *leaf;
	uint8_t *data;
	size_t len;
	int fromfd;
	char *from;
	struct rec *rec;
	uint16_t mode;
	int64_t mtime;
	uint64_t size;
	struct job *next;
};

struct pool {
	pthread_mutex_t mu;
	pthread_cond_t more;
	pthread_cond_t less;
	struct job *head;
	struct job **tail;
	size_t n_jobs; /* queued and running */
	size_t bytes;  /* in them */
	bool stop;
	int failed;
	struct sb_error why;
	pthread_t threads[8];
	unsigned n_threads;
	struct sb_store *store;
	uint64_t written_files;
	uint64_t written_bytes;
};

struct sb_recv {
	struct sb_replica *rep;
	struct sb_stage *stage;
	struct sb_recv_opts o;
	struct sb_manifest *added; /* what was put, MARKed; `ino` is 1 + record until the commit */
	struct sb_ops ops;
	struct sb_strlist deleted; /* paths of DEL changes */
	struct sb_strlist moved_from;
	struct rec **recs;
	uint32_t n_recs;
	struct items items;               /* DATA */
	struct items risky;               /* CLONE: may turn out to need DATA */
	struct sb_strlist dropped;        /* paths */
	struct sb_strlist dropped_staged; /* beneath "new" */
	struct dirh *dirs[DIRH_MAX];
	uint64_t clock;
	struct pool pool;
	char *tree; /* the new directory that staged things go into, or NULL */
	size_t tree_len;
	uint32_t tree_no;
	uint32_t next_stage;
	uint64_t bytes;
	uint64_t tree_files;
	uint64_t tree_dirs;
	bool set_root;
	uint16_t root_mode;
	int64_t root_mtime;
	char *last_parent; /* known to exist in `added` */
	char *last_path;   /* of the last plan piece */
};

struct rec *recv_rec(struct sb_recv *r, uint32_t n);

/* receive-write.c */
int recv_pool_start(struct sb_recv *r, unsigned jobs, struct sb_error *err);
/*
 * Ends the writers. Files that arrived are written first, unless it was canceled: the next attempt
 * need not send them again.
 */
void recv_pool_stop(struct sb_recv *r);
/* Waits until nothing is queued or running; returns what failed. */
int recv_pool_drain(struct sb_recv *r, struct sb_error *err);
/* Queues; takes over leaf, data, from and one reference of dir. */
int recv_pool_add(struct sb_recv *r, const struct job *j, struct sb_error *err);
/* The staging directory for `staged`'s parent with a reference, and the leaf. */
struct dirh *recv_dir(struct sb_recv *r, const char *staged, const char **leaf,
	struct sb_error *err);
void recv_dir_put(struct sb_recv *r, struct dirh *d);
/* Mode, mtime, then the stat for the cache; closes nothing. */
int recv_finish_file(int fd, uint16_t mode, int64_t mtime, struct rec *out, struct sb_error *err);
/* Compares got and want under the lock and sets the state. */
void recv_judge(struct sb_recv *r, struct rec *rec, const struct rec *result);

/* receive.c */
int recv_items_add(struct items *l, const struct item *it, struct sb_error *err);
void recv_items_free(struct items *l);

#endif
