/* SPDX-License-Identifier: MIT */
#ifndef SB_FLEET_PICK_H
#define SB_FLEET_PICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which node a new session goes to: the best of a few that chance names. Looking at all and taking
 * the best would send every front end with the same stale view to the same node; taking one by
 * chance would load them unevenly.
 */

/* What is known of a node. A limit of 0 is none; what is unknown is 0 of 0. */
struct sb_fleet_pick_load {
	uint32_t sessions, max_sessions; /* on record there, those under way included */
	uint64_t mem_used, mem;          /* any unit */
	uint64_t disk_used, disk;
	double busy; /* share of its processors at work, 0 to 1 */
};

struct sb_fleet_pick_opts {
	unsigned k;      /* how many chance names */
	double headroom; /* a node is full from this share of its sessions on, 0 to 1 */
	/* How much each share counts. */
	double w_sessions, w_mem, w_disk, w_busy;
};
#define SB_FLEET_PICK_OPTS_INIT \
	{ \
		.k = 3, .headroom = 1.0, .w_sessions = 1.0, .w_mem = 1.0, .w_disk = 1.0, \
		.w_busy = 0.25 \
	}

/*
 * How full a node is, 0 empty: the highest of its shares, and a little of the others, so that of
 * two with an equal worst share the one with more room in the rest is better. 1 and more: nothing
 * more fits.
 */
double sb_fleet_pick_score(const struct sb_fleet_pick_load *l, const struct sb_fleet_pick_opts *o);

/*
 * The loads of `n` nodes are asked for by number, each at most once or twice. `load` returns false
 * for a node that may not be taken (state, template, labels, tried before). Returns the number of
 * the chosen node, -1 when none may be taken or all are full; `*full` tells which. `random` gives
 * 64 bits by chance.
 */
typedef bool (*sb_fleet_pick_load_fn)(size_t i, struct sb_fleet_pick_load *out, void *arg);
long sb_fleet_pick(size_t n, sb_fleet_pick_load_fn load, uint64_t (*random)(void *arg), void *arg,
	const struct sb_fleet_pick_opts *o, bool *full);

#endif
