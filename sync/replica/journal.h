/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_JOURNAL_H
#define SBSYNC_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <sb/error.h>
#include <sync/tree/digest.h>
#include <sync/tree/entry.h>

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
struct sb_journal_seen {
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
	/* MOVE, LINK; FILE: it is made of that one, which stays if it fails; or NULL */
	char *from;
	struct sb_journal_seen old;
	uint32_t rec; /* the user's */
};

struct sb_journal {
	struct sb_op *v;
	size_t n;
	size_t cap;
	bool refresh; /* fill new_ino and new_ctime after the commit */
};

void sb_journal_free(struct sb_journal *o);
SB_CLEANUP_VALUE(sb_journal, sb_journal_free)
/*
 * A new zeroed operation with copies of the strings; valid until the next add. NULL: out of memory.
 */
struct sb_op *sb_journal_add(struct sb_journal *o, enum sb_op_kind kind, const char *path,
	const char *from, struct sb_error *err);
void sb_journal_seen_from(struct sb_journal_seen *o, const struct sb_entry *e);

/* The journal's bytes (drawn in journal.c); decode takes damaged files: SB_E_CORRUPT. */
int sb_journal_encode(const struct sb_journal *ops, struct sb_buf *out, struct sb_error *err);
int sb_journal_decode(const void *data, size_t len, struct sb_journal *out, struct sb_error *err);

#endif
