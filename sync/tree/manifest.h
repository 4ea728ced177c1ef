/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_MANIFEST_H
#define SBSYNC_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <sync/tree/digest.h>
#include <sync/tree/entry.h>

/*
 * A manifest: what a tree holds, in memory. Directories own sorted arrays of entries (byte order of
 * the names); names and arrays live in arenas that go with the manifest. 64 bytes an entry plus its
 * name. Not thread-safe for writers; any number of readers.
 */
struct sb_manifest {
	struct sb_entry root; /* SB_ENTRY_DIR with an empty name */
	char **leaders;       /* the first path (pre-order, byte order) of each hard-link group */
	uint32_t n_leaders;
	uint32_t cap_leaders;
	uint64_t count;      /* entries without the root (sb_manifest_finish) */
	struct sb_digest id; /* Merkle digest of the root plus the hard links: names this state of
				the tree (sb_manifest_finish) */
	void *arena;
};

struct sb_manifest *sb_manifest_new(struct sb_error *err);
void sb_manifest_free(struct sb_manifest *m);
SB_CLEANUP_PTR(sb_manifest, sb_manifest_free)

/*
 * Arena memory that lives as long as the manifest. Thread-safe (the scan's workers allocate in
 * parallel). NULL: out of memory.
 */
void *sb_manifest_alloc(struct sb_manifest *m, size_t size);
char *sb_manifest_strdup(struct sb_manifest *m, const char *s, size_t len);
/* Bytes packed without gaps, for names. */
char *sb_manifest_bytes(struct sb_manifest *m, size_t size);

/* Finds by path relative to the root ("" is the root). NULL when not there. */
struct sb_entry *sb_manifest_find(const struct sb_manifest *m, const char *path);
struct sb_entry *sb_manifest_dir_find(const struct sb_dir *d, const char *name, size_t len);

/*
 * Puts a copy of `e` (its name is taken from `path`, its children are kept if both are directories,
 * else dropped) at `path`; the parent must be a directory in the manifest. `target` for symlinks,
 * else NULL. The new entry is in no hard-link group (sb_manifest_set_link). "" changes the root's
 * own mode and times. Returns the entry, or NULL with `err`. Pointers to entries of the same
 * directory become stale.
 */
struct sb_entry *sb_manifest_put(struct sb_manifest *m, const char *path, const struct sb_entry *e,
	const char *target, struct sb_error *err);
/* Removes the entry with everything beneath; false when it is not there. */
bool sb_manifest_remove(struct sb_manifest *m, const char *path);
/* Gives `e` the hard-link group led by `leader` (made if new). */
int sb_manifest_set_link(struct sb_manifest *m, struct sb_entry *e, const char *leader,
	struct sb_error *err);
/*
 * Puts a copy of `e`, of another manifest, with everything beneath at `path`; what is there goes.
 * The copies are in no hard-link group. The second copies only what is beneath `d` to beneath
 * `path`, which is a directory; `bare`: without what only one machine knows (inode, ctime, flags).
 */
int sb_manifest_graft(struct sb_manifest *m, const char *path, const struct sb_entry *e,
	struct sb_error *err);
int sb_manifest_graft_dir(struct sb_manifest *m, const char *path, const struct sb_dir *d,
	bool bare, struct sb_error *err);
/* A deep copy. */
struct sb_manifest *sb_manifest_copy(const struct sb_manifest *m, struct sb_error *err);

/*
 * Computes every directory's Merkle digest and total, `count` and `id`; renumbers hard-link groups:
 * a group of one is no group, the leader is the first member, a member that differs from it in
 * size, digest, mode or mtime leaves the group. Call after building or changing. A directory's
 * digest covers, per child: type, name, mode (not of symlinks), mtime, size, digest. The root's own
 * mode and mtime travel with the manifest but are not in the id. Works with unhashed files; the id
 * means nothing then.
 */
int sb_manifest_finish(struct sb_manifest *m, struct sb_error *err);

/*
 * Pre-order walk in byte order of whole components; the root is not visited. `path` is valid during
 * the call. A negative return ends the walk and is returned; 1 from a directory skips what is
 * beneath it.
 */
typedef int (*sb_manifest_walk_fn)(const char *path, size_t len, struct sb_entry *e, void *arg);
int sb_manifest_walk(const struct sb_manifest *m, sb_manifest_walk_fn fn, void *arg);
int sb_manifest_walk_dir(const struct sb_dir *d, const char *prefix, sb_manifest_walk_fn fn,
	void *arg);

/*
 * Every directory beneath `root`, itself first, level by level and in order within a level: a
 * parent always stands before its children. The caller frees the array; the entries are borrowed.
 */
struct sb_entry **sb_manifest_dirs(const struct sb_entry *root, size_t *out_n,
	struct sb_error *err);

/*
 * What the paths of `n` entries may take together. A shared beginning costs a peer nothing to send,
 * and everybody who writes the paths out pays for it.
 */
#define SB_MANIFEST_PATHS_MAX(n) ((64ull << 20) + 256ull * (n))

/* Limits on what a peer may send. */
struct sb_manifest_limits {
	uint64_t max_entries;
	uint32_t max_depth;
	uint64_t max_bytes; /* encoded */
};
#define SB_MANIFEST_LIMITS_INIT \
	{ \
		.max_entries = 50000000, .max_depth = 4096, .max_bytes = 8ull << 30 \
	}

/*
 * The compact form (wire and disk): magic, version, flags, columns, XXH3 checksum; drawn in
 * manifest-codec-priv.h. Encode wants a finished manifest and appends to `out`. `with_stat` adds
 * inode, ctime, dev and the racy flag (scan cache; never on the wire). Decode checks everything:
 * names, order, duplicates, depth, counts, types, mode bits, nanoseconds, link leaders; finishes
 * the manifest. sb_manifest_decode fails with SB_E_CORRUPT, SB_E_VERSION or SB_E_LIMIT.
 */
int sb_manifest_encode(const struct sb_manifest *m, bool with_stat, struct sb_buf *out,
	struct sb_error *err);
struct sb_manifest *sb_manifest_decode(const void *data, size_t len,
	const struct sb_manifest_limits *limits, struct sb_error *err);
/*
 * The subtree at `prefix` alone (the peer's answer to a Merkle descent). Decoded, its leaders are
 * paths in the whole tree and may lie outside the subtree; groups of one are kept and the id does
 * not cover them.
 */
int sb_manifest_encode_dir(const struct sb_manifest *m, const struct sb_dir *d, const char *prefix,
	struct sb_buf *out, struct sb_error *err);
struct sb_manifest *sb_manifest_decode_dir(const void *data, size_t len,
	const struct sb_manifest_limits *limits, struct sb_error *err);

/*
 * Reads and atomically writes a manifest file; a missing file is SB_E_NOTFOUND, a damaged one
 * SB_E_CORRUPT.
 */
struct sb_manifest *sb_manifest_load(int dirfd, const char *name, struct sb_error *err);
int sb_manifest_save(const struct sb_manifest *m, bool with_stat, bool durable, int dirfd,
	const char *name, struct sb_error *err);

#endif
