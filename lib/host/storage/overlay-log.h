/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_OVERLAY_LOG_H
#define SB_HOST_OVERLAY_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>

/*
 * The append-only log of the overlay storage (doc/STORAGE.md). A record on disk:
 *
 *    0  "SBL1"
 *    4  u32  length of the payload
 *    8  u64  number of the record, one more than that of the record before
 *   16  payload: the fields of struct sb_overlay_rec in their order, integers as varints; an
 *       owner of 0 is left out
 *    .  u64  XXH3-64 of everything before
 */
enum sb_overlay_kind {
	SB_OVERLAY_OPEN = 1, /* boot, time */
	SB_OVERLAY_CLEAN,    /* every upper is on the disk */
	SB_OVERLAY_CREATE,   /* sid, base, node, upper, stack, origin, quota, project, time, head,
				owner */
	SB_OVERLAY_MOUNT,    /* sid, stack (none: it is not mounted) */
	SB_OVERLAY_NODE,     /* node, parent, layer, flat, bytes, durable: new or changed */
	SB_OVERLAY_SNAP,     /* sid, name, node, time, parent_name; with layer: the node is new;
				with upper: the session moves on to it, with that upper and stack */
	SB_OVERLAY_ROLL,     /* sid, node, head, upper, stack; `names` are gone */
	SB_OVERLAY_DURABLE,  /* node: it is on the disk */
	SB_OVERLAY_DROP,     /* sid, name */
	SB_OVERLAY_HOLD,     /* sid, name, tag */
	SB_OVERLAY_RELEASE,  /* the same */
	SB_OVERLAY_DESTROY,  /* sid */
	SB_OVERLAY_KINDS,
};

#define SB_OVERLAY_STACK_MAX 512
#define SB_OVERLAY_NAMES_MAX 65536

/* Texts are never NULL after a decode, "" when there are none; borrowed from the payload. */
struct sb_overlay_rec {
	uint8_t kind;
	const char *sid, *name, *parent_name, *head, *tag;
	const char *base, *origin_id, *origin_snap, *boot;
	uint64_t node, parent, layer, flat, upper;
	uint64_t bytes, quota, project, base_ino;
	int64_t time_ns, base_btime_ns;
	uint64_t durable;
	uint64_t stack[SB_OVERLAY_STACK_MAX];
	size_t n_stack;
	const char **names; /* after a decode: one block, freed by the caller */
	size_t n_names;
	uint64_t owner; /* whom the base image belongs to in this session; 0: as on the disk */
};

/* Adds the payload to `b`, whose failure sticks. */
void sb_overlay_log_encode(const struct sb_overlay_rec *rec, struct sb_buf *b);
/* SB_E_CORRUPT for what no encode makes. `rec->names` is to be freed. */
int sb_overlay_log_decode(const void *data, size_t len, struct sb_overlay_rec *rec,
	struct sb_error *err);

struct sb_overlay_log;

typedef int (*sb_overlay_log_fn)(const struct sb_overlay_rec *rec, void *arg, struct sb_error *err);

/*
 * Opens (or makes) the file `log` in the directory `dirfd` and hands every record to `fn`. A torn
 * end is cut off; SB_E_CORRUPT for a bad record with a good one behind it.
 */
struct sb_overlay_log *sb_overlay_log_open(int dirfd, sb_overlay_log_fn fn, void *arg,
	struct sb_error *err);
void sb_overlay_log_close(struct sb_overlay_log *l);

/*
 * Appends one record. After a failure nothing of it is there; when not even that can be made sure,
 * every later append fails. Not thread-safe; sb_overlay_log_sync is.
 */
int sb_overlay_log_append(struct sb_overlay_log *l, const struct sb_overlay_rec *rec,
	struct sb_error *err);
/* Everything that was appended before this call is on the disk after it; callers share the wait. */
int sb_overlay_log_sync(struct sb_overlay_log *l, struct sb_error *err);
/* Bytes of the file now. */
uint64_t sb_overlay_log_size(const struct sb_overlay_log *l);
/*
 * Replaces the whole file by what `fill` appends to it. The old one stays when anything fails.
 * Nobody may append meanwhile.
 */
int sb_overlay_log_rewrite(struct sb_overlay_log *l,
	int (*fill)(struct sb_overlay_log *l, void *arg, struct sb_error *err), void *arg,
	struct sb_error *err);

#endif
