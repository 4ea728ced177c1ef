/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_OVERLAY_STREAM_H
#define SB_HOST_OVERLAY_STREAM_H

#include <stdint.h>

#include <sb/host.h>

/*
 * A layer of the overlay storage as a stream of bytes. A part is
 *
 *   "SBLAYER1", the name of the snapshot, the name of the one it stands on ("" for a whole tree),
 *   its time (signed varint, ns), the attributes of the root, entries, 'E', u64 XXH3-64 of all
 * before.
 *
 * Entries, of a name each, in any order (we write them sorted); texts and byte strings have a
 * varint length in front:
 *
 *   'D' attributes, marks, entries, 'U'      a directory; marks: u8 opaque, redirect ("" for none)
 *   'F' attributes, chunks                   a file; a chunk is varint offset, bytes; an empty one
 *                                            at the size of the file ends it
 *   'K' path                                 one more name of a file that came before
 *   'L' attributes, target                   a symlink
 *   'S' attributes                           a fifo, a socket
 *   'W'                                      a whiteout
 *
 * Attributes: varints mode, uid, gid; signed varint mtime in ns; varint number of extended
 * attributes, each name and value. Parts follow each other without anything between them.
 */
struct sb_overlay_part {
	char name[SB_HOST_NAME_MAX + 1];
	char from[SB_HOST_NAME_MAX + 1];
	int64_t time_ns;
};

/* Writes the tree `dir` as one part; with `marks` those of overlayfs, too. */
int sb_overlay_stream_write(int fd, const struct sb_overlay_part *part, int dir, bool marks,
	const struct sb_host_call *call, struct sb_error *err);

struct sb_overlay_reader;
struct sb_overlay_reader *sb_overlay_stream_open(int fd, const struct sb_host_call *call,
	struct sb_error *err);
void sb_overlay_stream_close(struct sb_overlay_reader *r);
/* The head of the next part. 0: there is none, the stream ends here; 1: `out` is filled. */
int sb_overlay_stream_next(struct sb_overlay_reader *r, struct sb_overlay_part *out,
	struct sb_error *err);
/*
 * Its tree into the empty directory `to`. Marks, devices and whatever else a part that stands on
 * none cannot have are refused. SB_E_CORRUPT, SB_E_LIMIT.
 */
int sb_overlay_stream_read(struct sb_overlay_reader *r, const struct sb_overlay_part *part, int to,
	struct sb_error *err);

#endif
