/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_STORE_H
#define SBSYNC_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <sb/error.h>
#include <sync/tree/digest.h>

/*
 * The base store: content by digest, kept so that a changed file can be sent as a patch on what was
 * synced last, `diff` has its text, and `undo` and merge have theirs. Its files hold blocks (a few
 * hundred KiB of small files together, or one larger file's piece, each one zstd frame) and an
 * index; appended to, compacted when over the cap or when mostly dead. Nothing depends on it:
 * damaged or missing content reads as "not there" (every read is verified against the digest).
 * Thread-safe. One process at a time (the session lock).
 */
struct sb_store;

struct sb_store_opts {
	size_t size;
	uint64_t cap;      /* bytes on disk; oldest content goes first */
	uint64_t max_file; /* larger content is not kept */
	int level;
};
#define SB_STORE_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_store_opts), .cap = 1ull << 30, .max_file = 128u << 20, \
		.level = 1 \
	}

/* Opens or makes the store in directory `dirfd` (dup'ed). A damaged one is emptied. */
struct sb_store *sb_store_open(int dirfd, const struct sb_store_opts *opts, struct sb_error *err);
void sb_store_free(struct sb_store *s); /* flushes */
SB_CLEANUP_PTR(sb_store, sb_store_free)

bool sb_store_has(struct sb_store *s, const struct sb_digest *d);
/*
 * Adds content (a digest it has already is skipped). Silently leaves out content that is larger
 * than max_file.
 */
int sb_store_add(struct sb_store *s, const struct sb_digest *d, const void *data, size_t len,
	struct sb_error *err);
/* SB_E_NOTFOUND when not there or damaged. `out` is initialised by the call. */
int sb_store_get(struct sb_store *s, const struct sb_digest *d, struct sb_buf *out,
	struct sb_error *err);
/*
 * Writes what is pending, then applies the cap. `live` (may be NULL; must not call the store) says
 * which content is still wanted: when much was added since the last time, segments that hold mostly
 * other content are cleaned.
 */
int sb_store_flush(struct sb_store *s, bool (*live)(const struct sb_digest *d, void *arg),
	void *arg, struct sb_error *err);
uint64_t sb_store_bytes(const struct sb_store *s);

#endif
