/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RECEIVE_H
#define SBSYNC_RECEIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/strlist.h>
#include <sync/replica/commit.h>
#include <sync/codec/pack.h>
#include <sync/wire/proto.h>
#include <sync/replica/replica.h>
#include <sync/replica/stage.h>

/*
 * The receiving end of a sync: takes plan pieces and the data stream, stages everything, verifies
 * it, and commits. Until sb_receive_commit it changes nothing but the stage directory. One thread
 * drives it; a few workers write files.
 */
struct sb_receive;

struct sb_receive_opts {
	size_t size;
	uint16_t
		mode_mask; /* bits a mode may have (an untrusted peer's set-id and write bits go) */
	unsigned jobs;     /* writers; 0: by processors, at most 4 */
	uint64_t max_bytes;     /* content accepted in all */
	struct sb_store *store; /* keeps received content; may be NULL */
	bool confine; /* the peer is a sandbox: what it sends is unpacked in a confined process */
	/* What came: a few times a second, also within a large file; may be NULL. */
	void (*progress)(uint64_t files, uint64_t bytes, void *arg);
	void *arg;
};
#define SB_RECEIVE_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_receive_opts), .mode_mask = 07777, \
		.max_bytes = UINT64_MAX \
	}

/*
 * Takes over `stage`, as sb_stage_find gave it. The replica must have been scanned. Makes a missing
 * root.
 */
struct sb_receive *sb_receive_new(struct sb_replica *rep, struct sb_stage *stage,
	const struct sb_receive_opts *opts, struct sb_error *err);
void sb_receive_free(struct sb_receive *r);
SB_CLEANUP_PTR(sb_receive, sb_receive_free)

/*
 * Takes a plan piece: makes directories and links in the stage, clones, and expects DATA entries in
 * this order.
 */
int sb_receive_plan(struct sb_receive *r, const struct sb_plan_piece *piece, struct sb_error *err);

/* The reader for a data stream: in this process or, with `confine`, in one of its own. */
struct sb_pack_reader *sb_receive_reader(struct sb_receive *r, sb_pack_in_fn in, void *arg,
	struct sb_error *err);

/* Did something come that was to be confined, on a kernel that cannot? */
bool sb_receive_is_open(const struct sb_receive *r);

/* Takes the entry that sb_pack_reader_next gave. */
int sb_receive_entry(struct sb_receive *r, struct sb_pack_reader *in, const struct sb_pack_entry *e,
	struct sb_error *err);

/* Takes the DATA_END rows: one for each entry announced with DATA so far (since the last call). */
int sb_receive_rows(struct sb_receive *r, const uint8_t *p, size_t len, struct sb_error *err);

/* Waits until the writers have put all that came into the stage; returns what failed. */
int sb_receive_drain(struct sb_receive *r, struct sb_error *err);

/*
 * Drains the writers and verifies what they staged. `need` gets the paths whose content cannot be
 * made from what is here (a clone or patch whose basis has changed): the receiver expects them as
 * whole DATA entries next, in this order. Call it again after them.
 */
int sb_receive_settle(struct sb_receive *r, struct sb_strlist *need, struct sb_error *err);

/*
 * When the file at `path` cannot be put in its place, nothing happens to the one at `needed`: it
 * holds what the new one was made of. Both are in the plan.
 */
int sb_receive_hold(struct sb_receive *r, const char *path, const char *needed,
	struct sb_error *err);

/* Sets the root's own mode and mtime at the commit (mirror); without it the root keeps its mode. */
void sb_receive_root_meta(struct sb_receive *r, uint16_t mode, int64_t mtime);

/*
 * Commits, then brings the replica's manifest up to date (finished; stat fields filled) without
 * scanning. SB_E_STATE when something is still missing.
 */
int sb_receive_commit(struct sb_receive *r, enum sb_durability durability,
	struct sb_commit_result *res, struct sb_error *err);

/* Saves the scan cache after that, if it did enough to be worth it (sb_replica_update_cache). */
void sb_receive_update_cache(struct sb_replica *rep, const struct sb_commit_result *res);

#endif
