/* SPDX-License-Identifier: MIT */
#ifndef SB_FLEET_VIEW_PRIV_H
#define SB_FLEET_VIEW_PRIV_H

#include <pthread.h>

#include <fleet/fleet-table.h>
#include <fleet/fleet-view.h>

/* A node that the view has heard of. Its number is its place in the list, and stays. */
struct sb_fleet_known {
	char id[SB_FLEET_NAME_MAX + 1];
	bool recorded; /* there is a record of it */
	bool alive;    /* there is a load of it, so its lease lives */
	struct sb_fleet_node node;
	struct sb_fleet_load load;
	int64_t node_rev, load_rev;
	uint32_t boxes; /* sessions on record there */
	uint32_t round, load_round;
};

struct sb_fleet_view {
	struct sb_fleet_view_opts o;
	char *prefix;
	pthread_rwlock_t lock; /* of what follows */
	struct sb_fleet_known *nodes;
	size_t n_nodes, cap_nodes;
	uint32_t *tenants; /* sessions of each, by number */
	size_t n_tenants, cap_tenants;
	struct sb_fleet_table boxes, node_numbers, tenant_numbers;
	uint32_t round;
	int64_t damaged;

	pthread_mutex_t mu; /* of the state of the thread */
	pthread_cond_t turn;
	bool listed;
	int64_t heard_ms;
	struct sb_error why; /* what it is waiting for */
	struct sb_cancel *stop;
	pthread_t thread;
	bool running;
};

/* A record changed (`data`) or was deleted (NULL). `key` is behind the prefix. */
void sb_fleet_view_take(struct sb_fleet_view *v, const char *key, const void *data, size_t len,
	int64_t rev);

/* As full as the host says, or as the records say, whichever is more. */
void sb_fleet_view_load(const struct sb_fleet_known *k, struct sb_fleet_pick_load *out);

/* Begins a list, and ends it: what was not told in between and is older than `rev` is gone. */
void sb_fleet_view_sweep_begin(struct sb_fleet_view *v);
void sb_fleet_view_sweep_end(struct sb_fleet_view *v, int64_t rev);

/* The thread: lists and watches until `stop`. */
void *sb_fleet_view_watch_main(void *arg);

#endif
