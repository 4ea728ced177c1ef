/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RECEIVE_PRIV_H
#define SBSYNC_RECEIVE_PRIV_H

#include <pthread.h>

#include <sync/codec/unpack.h>
#include <sync/replica/receive.h>

/*
 * Shared by receive.c (plan), receive-data.c (stream), receive-write.c (writers) and
 * receive-commit.c.
 */

#define SB_RECEIVE_SMALL (1u << 20) /* up to this a file is written by a worker, in one piece */

enum sb_receive_state {
	REC_PENDING,
	REC_OK,
	REC_BAD,     /* written, but not the content that was announced */
	REC_DROPPED, /* the sender could not read it */
};

/* What became of one staged file. Guarded by the pool's lock while writers run. */
struct sb_receive_rec {
	struct sb_digest got;
	struct sb_digest want; /* zero: not known yet */
	uint64_t ino;
	int64_t ctime;
	uint8_t state;
	bool unreadable; /* dropped for want of permission */
	bool again;      /* could not be made of what is here: asked for whole */
};

#define REC_BLOCK 4096u

/* A file whose bytes are to come, or that is made from something here. */
struct sb_receive_item {
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

struct sb_receive_items {
	struct sb_receive_item *v;
	size_t n;
	size_t cap;
	size_t data_at; /* the next one the stream must bring */
	size_t row_at;  /* the next one to get its row */
};

/* A staging directory kept open; counted. */
struct sb_receive_dir {
	char *path;
	int fd;
	unsigned refs;
	uint64_t used;
};

#define DIRH_MAX 32

enum sb_receive_job_kind {
	JOB_WRITE, /* `data` */
	JOB_CLONE, /* from `from` beneath `fromfd` */
};

struct sb_receive_job {
	enum sb_receive_job_kind kind;
	struct sb_receive_dir *dir;
	char *leaf;
	uint8_t *data;
	size_t len;
	int fromfd;
	char *from;
	struct sb_receive_rec *rec;
	uint16_t mode;
	int64_t mtime;
	uint64_t size;
	struct sb_receive_job *next;
};

struct sb_receive_pool {
	bool made; /* there is something to stop and to free; no thread changes it */
	pthread_mutex_t mu; /* guards all below while threads run */
	pthread_cond_t more;
	pthread_cond_t less;
	struct sb_receive_job *head;
	struct sb_receive_job **tail;
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
	unsigned open_dirs; /* struct sb_receive_dir that there are, and how many there may be */
	unsigned max_dirs;
};

struct sb_receive {
	struct sb_replica *rep;
	struct sb_stage *stage;
	struct sb_receive_opts o;
	struct sb_unpack *unpack;  /* with `confine`, once something came */
	struct sb_manifest *added; /* what was put, MARKed; `ino` is 1 + record until the commit */
	struct sb_journal ops;
	struct sb_strlist deleted; /* paths of DEL changes */
	struct sb_strlist moved_from;
	struct sb_receive_rec **recs;
	uint32_t n_recs;
	struct sb_receive_items items;    /* DATA */
	struct sb_receive_items risky;    /* CLONE: may turn out to need DATA */
	struct sb_strlist dropped;        /* paths */
	struct sb_strlist dropped_staged; /* beneath "new" */
	struct sb_receive_dir *dirs[DIRH_MAX];
	uint64_t clock;
	struct sb_receive_pool pool;
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
	/* For the progress callback: what came. */
	uint64_t came_files;
	uint64_t came_bytes;
	int64_t told;
};

struct sb_receive_rec *sb_receive_rec(struct sb_receive *r, uint32_t n);

/* receive-write.c */
int sb_receive_pool_start(struct sb_receive *r, unsigned jobs, struct sb_error *err);
/*
 * Ends the writers. Files that arrived are written first, unless it was canceled: the next attempt
 * need not send them again.
 */
void sb_receive_pool_stop(struct sb_receive *r);
/* Queues; takes over leaf, data, from and one reference of dir. */
int sb_receive_pool_add(struct sb_receive *r, const struct sb_receive_job *j, struct sb_error *err);
/* The staging directory for `staged`'s parent with a reference, and the leaf. */
struct sb_receive_dir *sb_receive_dir_get(struct sb_receive *r, const char *staged,
	const char **leaf, struct sb_error *err);
void sb_receive_dir_put(struct sb_receive *r, struct sb_receive_dir *d);
/* Mode, mtime, then the stat for the cache; closes nothing. */
int sb_receive_finish_file(int fd, uint16_t mode, int64_t mtime, struct sb_receive_rec *out,
	struct sb_error *err);
/* Compares got and want under the lock and sets the state. */
void sb_receive_judge(struct sb_receive *r, struct sb_receive_rec *rec,
	const struct sb_receive_rec *result);

/* receive.c */
int sb_receive_items_add(struct sb_receive_items *l, const struct sb_receive_item *it,
	struct sb_error *err);
void sb_receive_items_free(struct sb_receive_items *l);

#endif
