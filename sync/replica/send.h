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
struct sb_sender;

struct sb_sender_opts {
	size_t size;
	int level;     /* compression, as sb_packw_opts.level */
	bool no_delta; /* never patch, never delta */
	bool keep_all; /* all of it goes into the store: a later merge needs it */
	bool open;     /* the way to the receiver is not encrypted: a pipe of this machine */
	int recipes;   /* folder of recipes of what the receiver has, -1: none */
	struct sb_store *store; /* last-synced bytes: used as patch bases, filled with what is sent;
				   may be NULL */
	void (*progress)(uint64_t files, uint64_t bytes, void *arg);
	void *arg;
};
#define SB_SENDER_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_sender_opts), .level = SB_PACK_LEVEL_AUTO, .recipes = -1 \
	}

struct sb_sender *sb_sender_new(struct sb_replica *rep, struct sb_wire *w,
	const struct sb_sender_opts *opts, struct sb_error *err);
void sb_sender_free(struct sb_sender *s);
SB_CLEANUP_PTR(sb_sender, sb_sender_free)

/*
 * Sends the file that `e` describes. A file that is gone or not what the scan saw any more is
 * accounted for in its row, not an error. An unhashed `e` gets its digest.
 */
int sb_sender_file(struct sb_sender *s, const struct sb_want *w, struct sb_entry *e,
	struct sb_error *err);

/* A row for a file that will not come at all. */
int sb_sender_skip(struct sb_sender *s, enum sb_sent status, struct sb_error *err);

/*
 * Ends the stream: the last blocks, the rows, DATA_END (nothing at all when no file was sent). Does
 * not flush the wire.
 */
int sb_sender_finish(struct sb_sender *s, struct sb_error *err);

struct sb_sender_stats {
	uint64_t files;
	uint64_t bytes;   /* of content sent whichever way */
	uint64_t patches; /* files sent as patch or delta */
	uint64_t lost;    /* rows that are not OK */
};
const struct sb_sender_stats *sb_sender_stats(const struct sb_sender *s);

#endif
