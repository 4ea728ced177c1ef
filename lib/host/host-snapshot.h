/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_SNAPSHOT_H
#define SB_HOST_HOST_SNAPSHOT_H

#include <host/hsess.h>

struct sb_host;

/* SB_E_NO_SNAPSHOTS when the storage cannot make snapshots at all. */
int sb_host_snapshot_need(const struct sb_host *h, struct sb_error *err);

/* Takes a snapshot. The caller holds the slot; `out` may be NULL. */
int sb_host_snapshot_take(struct sb_host *h, struct sb_hsess *s, const char *name,
	enum sb_host_snap_kind kind, uint64_t turn, struct sb_host_snapshot *out,
	struct sb_error *err);

/*
 * The snapshot of that name if callers may see it, else NULL with SB_E_SNAPSHOT_NOT_FOUND. The
 * caller holds the slot and not `mu`.
 */
struct sb_snap *sb_host_snapshot_visible(struct sb_hsess *s, const char *name,
	struct sb_error *err);

/* The kind that a name has by its form; `turn` is set for a turn's. */
enum sb_host_snap_kind sb_host_snapshot_kind_of(const struct sb_host *h, const char *name,
	uint64_t *turn);

/*
 * A pinned snapshot stays while a fork or a transfer reads it without the slot. Pins `name`, or a
 * new snapshot of now when `name` is NULL or ""; writes its name to `out` and its turn to `turn`.
 * The caller holds the slot to pin, and needs nothing to unpin.
 */
int sb_host_snapshot_pin(struct sb_host *h, struct sb_hsess *s, const char *name,
	char out[SB_HOST_NAME_MAX + 1], uint64_t *turn, struct sb_error *err);
void sb_host_snapshot_unpin(struct sb_hsess *s, const char *name);

/* What callers may see of it, without its sizes. The caller holds `mu`. */
int sb_host_snapshot_describe(struct sb_host *h, const struct sb_hsess *s,
	const struct sb_snap *snap, struct sb_host_snapshot *out, struct sb_error *err);

#endif
