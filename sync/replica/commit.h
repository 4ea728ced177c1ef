/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_COMMIT_H
#define SBSYNC_COMMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <sb/log.h>
#include <sync/tree/manifest.h>
#include <sync/wire/proto.h>

/*
 * Making staged changes visible. The operations are written to a journal in the stage directory,
 * then done in the order of their phases; each checks that what it replaces is what the scan saw,
 * and puts it back when it is not. A crash leaves the journal: sb_commit_recover does the rest.
 * Every operation can be repeated.
 */
enum sb_op_kind {
	SB_OP_TREE = 1, /* phase 0: a staged directory goes to a path where no directory is */
	SB_OP_MOVE,     /* 1: rename within the root */
	SB_OP_FILE, /* 2: a staged file or symlink goes in place; phase 6 where a directory was */
	SB_OP_LINK, /* 4: hard link to `from` */
	SB_OP_META, /* 3: mode and mtime of a file */
	SB_OP_DEL,  /* 5: a file, a symlink or an empty directory goes */
	SB_OP_DIRMETA, /* 7: mode and mtime of a directory, deepest first */
};

/* What the scan saw at a path. */
struct sb_old {
	uint8_t type; /* enum sb_entry_type; 0: nothing was there */
	bool racy;    /* stat alone cannot tell: compare the content too */
	uint64_t ino;
	uint64_t size;
	int64_t mtime;
	int64_t ctime;
	struct sb_digest digest;
};

struct sb_op {
	uint8_t kind;
	uint8_t type;   /* of the new entry */
	uint8_t failed; /* 1 + enum sb_commit_why once it was left alone */
	uint8_t rank;   /* order within the phase */
	uint16_t mode;
	uint32_t stage; /* number of the staged name */
	int64_t mtime;
	uint64_t new_ino;  /* of the staged thing; after the commit: of what is at `path` */
	int64_t new_ctime; /* after the commit */
	char *path;
	char *from; /* MOVE, LINK */
	struct sb_old old;
	uint32_t rec; /* the user's */
};

struct sb_ops {
	struct sb_op *v;
	size_t n;
	size_t cap;
	bool refresh; /* fill new_ino and new_ctime after the commit */
};

void sb_ops_free(struct sb_ops *o);
SB_CLEANUP_VALUE(sb_ops, sb_ops_free)
/*
 * A new zeroed operation with copies of the strings; valid until the next add. NULL: out of memory.
 */
struct sb_op *sb_ops_add(struct sb_ops *o, enum sb_op_kind kind, const char *path, const char *from,
	struct sb_error *err);
void sb_old_from_entry(struct sb_old *o, const struct sb_entry *e);

enum sb_durability {
	SB_DURABLE_DEFAULT, /* full when the data came from a sandbox, else none */
	SB_DURABLE_NONE,    /* safe against a killed process */
	SB_DURABLE_BARRIER, /* and against a power cut: old or new, whichever */
	SB_DURABLE_FULL,    /* and on disk when success is reported */
};

/* Names inside the stage directory. */
#define SB_STAGE_NEW "new"
#define SB_STAGE_OLD "old"
#define SB_STAGE_TRASH "trash"
#define SB_STAGE_JOURNAL "journal"
#define SB_STAGE_DONE "done" /* the journal once all of it was done */

/* The staged name of number `n`, for example "t12"; `buf` holds 16 bytes. */
char *sb_stage_name(char kind, uint32_t n, char *buf);

/*
 * Commits: journal, apply, drop the journal and what was swapped out. `stagefd` is the stage
 * directory with the staged things in "new". What was left alone is in `res->left` and marked in
 * the ops. An error (disk full, I/O) before the journal is complete changed nothing; after it, the
 * journal stays for recovery.
 */
int sb_commit_run(int rootfd, int stagefd, struct sb_ops *ops, enum sb_durability durability,
	const struct sb_log *log, struct sb_commit_result *res, struct sb_error *err);

/*
 * Finishes what a crash left in the root's stage directory: 1 when there was something, 0 when not.
 */
int sb_commit_recover(int rootfd, const struct sb_log *log, struct sb_error *err);

/*
 * Takes away what an interrupted transfer left, when nothing is to be sent any more. A stage with a
 * journal stays.
 */
void sb_commit_drop_leftovers(int rootfd, const struct sb_log *log);

/* The journal's bytes (drawn in journal.c); decode takes damaged files: SB_E_CORRUPT. */
int sb_journal_encode(const struct sb_ops *ops, struct sb_buf *out, struct sb_error *err);
int sb_journal_decode(const void *data, size_t len, struct sb_ops *out, struct sb_error *err);

#endif
