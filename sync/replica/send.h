/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SEND_H
#define SBSYNC_SEND_H

#include <stdbool.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sync/codec/pack.h>
#include <sync/wire/proto.h>
#include <sync/replica/replica.h>
#include <sync/wire/wire.h>

/*
 * The sending end of a sync: file contents as a data stream over the wire, each read once, hashed
 * as it is read, sent as a patch, a delta or whole, whichever is smallest with what is known about
 * the receiver. One thread drives it.
 */
struct sb_send;

struct sb_send_opts {
	size_t size;
	int level;     /* compression, as sb_pack_writer_opts.level */
	bool no_delta; /* never patch, never delta */
	bool keep_all; /* keeps all of it in the store: a later merge needs it */
	bool open;     /* the way to the receiver is not encrypted: a pipe of this machine */
	int recipes;   /* folder of recipes of what the receiver has, -1: none */
	struct sb_store *store; /* last-synced bytes: used as patch bases, filled with what is sent;
				   may be NULL */
	/*
	 * What is done of what was announced, also of files that cannot be sent: a few times a
	 * second, also within a file, and at the end; may be NULL.
	 */
	void (*progress)(uint64_t files, uint64_t bytes, void *arg);
	void *arg;
};
#define SB_SEND_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_send_opts), .level = SB_PACK_LEVEL_AUTO, .recipes = -1 \
	}

struct sb_send *sb_send_new(struct sb_replica *rep, struct sb_wire *w,
	const struct sb_send_opts *opts, struct sb_error *err);
void sb_send_free(struct sb_send *s);
SB_CLEANUP_PTR(sb_send, sb_send_free)

/*
 * Sends the file that `e` describes. A file that is gone, or not what the scan saw any more, is a
 * row that says so and no error. An unhashed `e` gets its digest.
 */
int sb_send_file(struct sb_send *s, const struct sb_want *w, struct sb_entry *e,
	struct sb_error *err);

/* A row for a file that will not come at all. */
int sb_send_skip(struct sb_send *s, enum sb_sent status, struct sb_error *err);

/*
 * Ends the stream: the last blocks, the rows, DATA_END (nothing at all when no file was sent). Does
 * not flush the wire.
 */
int sb_send_finish(struct sb_send *s, struct sb_error *err);

struct sb_send_stats {
	uint64_t files;
	uint64_t bytes;   /* of content sent whichever way */
	uint64_t patches; /* files sent as patch or delta */
	uint64_t lost;    /* rows that are not OK */
	uint64_t attrs;   /* files with attributes or lists that do not travel */
};
const struct sb_send_stats *sb_send_stats(const struct sb_send *s);

#endif
