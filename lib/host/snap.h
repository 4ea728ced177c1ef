/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_SNAP_H
#define SB_HOST_SNAP_H

#include <stdint.h>

#include <base/cleanup.h>
#include <sb/host-snapshot.h>

/* The host's record of a snapshot and of the holds on it. The session's `mu` guards them. */

/* A record whose storage step is not done yet is an intent; the next open finishes it. */
enum sb_intent {
	SB_INTENT_NONE,   /* record and storage agree */
	SB_INTENT_MAKE,   /* the storage may have it or not */
	SB_INTENT_REMOVE, /* gone for callers; the storage may still have it */
};

struct sb_hold {
	char *tag;
	enum sb_intent intent;
};

struct sb_snap {
	char *name;
	enum sb_host_snap_kind kind;
	enum sb_intent intent;
	uint64_t turn;
	int64_t created_ns;
	unsigned pins; /* see sb_host_snapshot_pin */
	struct sb_hold *holds;
	size_t n_holds;
};

struct sb_snap *sb_snap_new(const char *name, enum sb_host_snap_kind kind, struct sb_error *err);
void sb_snap_free(struct sb_snap *snap);
SB_CLEANUP_PTR(sb_snap, sb_snap_free)
int sb_snap_hold_add(struct sb_snap *snap, const char *tag, enum sb_intent intent,
	struct sb_error *err);
struct sb_hold *sb_snap_hold_find(const struct sb_snap *snap, const char *tag);
void sb_snap_hold_drop(struct sb_snap *snap, struct sb_hold *hold);
/* Counts the holds in force. */
unsigned sb_snap_holds(const struct sb_snap *snap);

#endif
