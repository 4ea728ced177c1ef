/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_PACK_H
#define SBSYNC_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/cancel.h>
#include <sb/error.h>
#include <sync/tree/digest.h>

/*
 * The data stream: a pax tar (libarchive, tar only) cut into blocks, each block one zstd frame or
 * stored as it is. The kind of an entry says what its bytes are; all kinds but SB_PACK_WHOLE carry
 * their attributes as extended attributes (user.sbsync.*), so that any tar can read the archive.
 * SB_PACK_WHOLE entries have plain headers (no pax extension unless the name or size needs it):
 * mode, mtime and digest travel in the plan, not here.
 */
enum sb_pack_kind {
	SB_PACK_WHOLE,
	SB_PACK_PATCH,  /* one zstd frame made with the base content (digest `base`) as prefix */
	SB_PACK_DELTA,  /* a librsync delta against the content with digest `base` */
	SB_PACK_RANGE,  /* bytes from `offset` to the end; the receiver holds what is before, with
			   digest `base` */
	SB_PACK_SPARSE, /* whole, holes left out: varint pairs (offset, length) precede each data
			   run; a final pair (size, 0) ends it */
};

struct sb_pack_entry {
	const char *path;
	uint64_t size;      /* of the entry's bytes in the stream; must be known beforehand */
	uint64_t file_size; /* of the finished file */
	enum sb_pack_kind kind;
	struct sb_digest base; /* PATCH, DELTA, RANGE */
	uint64_t offset;       /* RANGE */
};

enum sb_pack_codec {
	SB_PACK_STORED = 0,
	SB_PACK_ZSTD = 1,
};

/* One block on its way out. `raw_len` is its length before compression. Valid during the call. */
typedef int (*sb_pack_out_fn)(enum sb_pack_codec codec, size_t raw_len, const void *data,
	size_t len, void *arg, struct sb_error *err);

struct sb_pack_writer_opts {
	size_t size;
	int level;         /* SB_PACK_LEVEL_AUTO, 0 (store everything) or 1..19 */
	size_t block_size; /* raw bytes a block; 0: chosen (grows when the link is slow) */
	unsigned jobs;     /* compression threads; 0: by processors, at most 4 */
	bool sealed; /* `out` leads to encryption, which costs more than the fastest level: AUTO
			stores nothing that shrinks */
	bool small; /* AUTO keeps to few megabytes: blocks of 256 KiB, no level with large tables */
	sb_pack_out_fn out; /* called in stream order from one thread of the writer; may block
			       (back-pressure) */
	void *arg;
	const struct sb_cancel *cancel;
};
#define SB_PACK_LEVEL_AUTO (-1000)
#define SB_PACK_WRITER_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_pack_writer_opts), .level = SB_PACK_LEVEL_AUTO \
	}
#define SB_PACK_BLOCK_MAX (4u << 20)

/*
 * The writer. begin, data (exactly entry.size bytes in any pieces), end, ..., finish. Queues are
 * bounded. Adapts: a block whose sample does not shrink is stored; in AUTO the level follows how
 * long `out` blocks against how long compression takes. Free without finish writes nothing more. A
 * failure of `out` sticks: every later call returns it.
 */
struct sb_pack_writer;
struct sb_pack_writer *sb_pack_writer_new(const struct sb_pack_writer_opts *opts,
	struct sb_error *err);
int sb_pack_writer_begin(struct sb_pack_writer *w, const struct sb_pack_entry *e,
	struct sb_error *err);
int sb_pack_writer_data(struct sb_pack_writer *w, const void *data, size_t len,
	struct sb_error *err);
int sb_pack_writer_end(struct sb_pack_writer *w, struct sb_error *err);
int sb_pack_writer_finish(struct sb_pack_writer *w, struct sb_error *err);
/*
 * Does the stream wait for a slow link (rather than for files or processors)? Known after a few
 * blocks.
 */
bool sb_pack_writer_link_bound(struct sb_pack_writer *w);
void sb_pack_writer_free(struct sb_pack_writer *w);
SB_CLEANUP_PTR(sb_pack_writer, sb_pack_writer_free)

/*
 * Where the next block comes from: 1 with a block (valid until the next call), 0 at the end,
 * negative on failure.
 */
typedef int (*sb_pack_in_fn)(enum sb_pack_codec *codec, size_t *raw_len, const void **data,
	size_t *len, void *arg, struct sb_error *err);

/*
 * The reader of a stream from an untrusted peer. Blocks larger than SB_PACK_BLOCK_MAX, frames with
 * a larger window or that do not give exactly raw_len bytes, tar features we do not write (links,
 * devices, sparse maps, ACLs, other formats, any pax record that is not ours) and trailing garbage
 * are SB_E_PROTO. next: 1 with an
 * entry (strings valid until the next call), 0 at the end of the archive. read: borrowed bytes of
 * the current entry; 0 at its end. next skips what was not read.
 */
struct sb_pack_reader;
struct sb_pack_reader *sb_pack_reader_new(sb_pack_in_fn in, void *arg, struct sb_error *err);
int sb_pack_reader_next(struct sb_pack_reader *r, struct sb_pack_entry *out, struct sb_error *err);
ssize_t sb_pack_reader_read(struct sb_pack_reader *r, const void **out, struct sb_error *err);
void sb_pack_reader_free(struct sb_pack_reader *r);
SB_CLEANUP_PTR(sb_pack_reader, sb_pack_reader_free)

#endif
