/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_ENTRY_H
#define SBSYNC_ENTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <sync/tree/digest.h>

/* One thing in a tree: a directory, a regular file or a symlink. 64 bytes plus its name. */
enum sb_entry_type {
	SB_ENTRY_DIR = 1,
	SB_ENTRY_FILE = 2,
	SB_ENTRY_LINK = 3,
};

enum {
	SB_ENTRY_UNHASHED = 1 << 0, /* a file whose digest is not known yet (lazy scan) */
	SB_ENTRY_RACY = 1 << 1,     /* stat too close to the scan: the cache must not trust it */
	SB_ENTRY_MARK = 1 << 2,     /* free for the user of the manifest */
};

struct sb_dir;

struct sb_entry {
	const char *name; /* NUL-terminated; a symlink's target stands behind that NUL,
			     NUL-terminated too */
	union {
		uint64_t size;      /* files: bytes; symlinks: length of the target */
		struct sb_dir *dir; /* directories: never NULL */
	};
	int64_t mtime;           /* ns since the epoch */
	struct sb_digest digest; /* files: content; symlinks: target; directories: Merkle
				    (sb_manifest_finish) */
	uint64_t ino;            /* local knowledge, never on the wire: 0 when not known */
	int64_t ctime;           /* likewise, ns */
	uint32_t link; /* 1 + index into `leaders` when hard-linked to other entries here, else 0 */
	uint16_t mode; /* 07777 bits */
	uint8_t type;  /* enum sb_entry_type */
	uint8_t flags : 4;
	uint8_t spare : 4;
};

struct sb_dir {
	struct sb_entry *entries; /* sorted by name */
	uint32_t n;
	uint32_t cap;
	uint32_t total; /* entries beneath, all levels (sb_manifest_finish) */
	uint64_t dev;   /* local knowledge */
};

static inline const char *
sb_entry_target(const struct sb_entry *e)
{
	return e->name + strlen(e->name) + 1;
}

/*
 * Same type and content (size+digest, target); directories are always alike. Unknown digests never
 * are.
 */
bool sb_entry_same_content(const struct sb_entry *a, const struct sb_entry *b);
/* Same content, mode and mtime. Mode is not compared for symlinks. */
bool sb_entry_same(const struct sb_entry *a, const struct sb_entry *b);

#endif
