/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_COLDWRITE_H
#define SB_HOST_COLDWRITE_H

#include <stdatomic.h>

#include <host/cold/coldindex.h>
#include <host/cold/coldpace.h>
#include <host/cold/coldstore.h>

/*
 * Streams into frames, frames into parts, parts into the store. The stream is cut where its content
 * says (a rolling hash), so that the same bytes make the same frames wherever they stand, and
 * frames that an earlier archive of the tenant has are not written again. Some threads write parts
 * while the caller cuts and compresses.
 */
struct sb_coldwrite;

struct sb_coldwrite_opts {
	struct sb_coldstore *store;
	const char *space;            /* the tenant's part of the store */
	const struct sb_coldkey *key; /* NULL: in the clear */
	struct sb_coldpace *pace;     /* may be NULL */
	const struct sb_host_call *call;
	atomic_ullong *read, *written; /* plain bytes taken, bytes stored; may be NULL */
};

/* `x` is filled in; it has no streams yet. */
struct sb_coldwrite *sb_coldwrite_open(const struct sb_coldwrite_opts *o, struct sb_coldindex *x,
	struct sb_error *err);
/* What an index of the tenant names and is encrypted with the same key may be used again. */
int sb_coldwrite_know(struct sb_coldwrite *w, const struct sb_coldindex *old, struct sb_error *err);
/*
 * Stream number `stream` of an index that was made known, as it is; nothing is written. 0: it
 * cannot be used; 1: it is one of the archive's now.
 */
int sb_coldwrite_reuse(struct sb_coldwrite *w, const struct sb_coldindex *old, size_t stream,
	struct sb_error *err);
/* Reads `fd` to its end as one stream. */
int sb_coldwrite_stream(struct sb_coldwrite *w, const char *snapshot, const char *from, int fd,
	struct sb_error *err);
/* The last part; waits until all of them are in the store. */
int sb_coldwrite_end(struct sb_coldwrite *w, struct sb_error *err);
void sb_coldwrite_close(struct sb_coldwrite *w); /* NULL is allowed */
SB_CLEANUP_PTR(sb_coldwrite, sb_coldwrite_close)

#endif
