/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_PACK_STRICT_H
#define SBSYNC_PACK_STRICT_H

#include <base/buf.h>
#include <sb/error.h>

/*
 * Looks at the tar stream of a peer beside libarchive, which reads records of a pax header that
 * mean nothing for a plain file (linkpath, access control lists, times, comments) and drops them.
 * What we do not write is refused, not ignored: a stream that says more than we understand is not
 * one of ours.
 */
struct sb_pack_strict {
	uint8_t head[512]; /* the header that is being gathered */
	size_t have;
	uint64_t skip;     /* bytes of a body, with its padding, still to come */
	uint64_t pax_left; /* of a pax header's body */
	struct sb_buf pax;
	uint64_t size; /* of the next entry, as a pax header told */
	bool has_size;
};

void sb_pack_strict_init(struct sb_pack_strict *s);
void sb_pack_strict_free(struct sb_pack_strict *s);

/* The next bytes of the stream, in any pieces; SB_E_PROTO for what is not ours. */
int sb_pack_strict_feed(struct sb_pack_strict *s, const void *data, size_t len,
	struct sb_error *err);

#endif
