/* SPDX-License-Identifier: MIT */
#ifndef SB_FLEET_VIEW_H
#define SB_FLEET_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fleet/etcd/etcd.h>
#include <fleet/fleet-pick.h>
#include <fleet/fleet-record.h>
#include <sb/log.h>

/*
 * What one front end knows of the fleet: every record of nodes, loads and sessions, kept in memory
 * by a thread that lists them once and then watches. It may be a moment behind; who changes
 * something compares by revision, and tells the view at once what it has changed. Thread-safe.
 */
struct sb_fleet_view;

struct sb_fleet_view_opts {
	size_t size;
	struct sb_etcd *etcd; /* borrowed */
	const char *prefix;   /* "/sbfleet/NAME/" */
	int64_t quiet_ms;     /* a member of etcd that is silent for so long is left for another */
	int64_t relist_ms;    /* everything is listed again so often, whatever the watch said */
	/* Whenever records have changed, on the view's thread; may be NULL. */
	void (*on_change)(void *arg);
	void *arg;
	struct sb_log log;
};
#define SB_FLEET_VIEW_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_fleet_view_opts), .quiet_ms = 5000, .relist_ms = 600000 \
	}

/* Starts the thread. Knows nothing yet: see sb_fleet_view_wait. */
struct sb_fleet_view *sb_fleet_view_new(const struct sb_fleet_view_opts *o, struct sb_error *err);
void sb_fleet_view_free(struct sb_fleet_view *v); /* takes NULL; ends the thread */
SB_CLEANUP_PTR(sb_fleet_view, sb_fleet_view_free)

/* Until all records were read once; SB_E_TIMEOUT and SB_E_CANCELED name what is missing. */
int sb_fleet_view_wait(struct sb_fleet_view *v, const struct sb_cancel *cancel, sb_deadline until,
	struct sb_error *err);

/* Where a session is. A value. */
struct sb_fleet_at {
	char node[SB_FLEET_NAME_MAX + 1];
	char to[SB_FLEET_NAME_MAX + 1];
	enum sb_fleet_box_state state;
	int64_t rev; /* the fencing token of calls that change it */
};
bool sb_fleet_view_box(struct sb_fleet_view *v, const char *session, struct sb_fleet_at *out);

/* A copy of a node's record, for the caller to clear, and how full it is. False: no such node. */
bool sb_fleet_view_node(struct sb_fleet_view *v, const char *id, struct sb_fleet_node *node,
	struct sb_fleet_pick_load *load, bool *alive);

/* The names of all nodes, sorted. */
int sb_fleet_view_nodes(struct sb_fleet_view *v, struct sb_strlist *out, struct sb_error *err);

/* What a new session asks of its node. */
struct sb_fleet_want {
	const char *template;            /* NULL: none */
	const struct sb_strmap *labels;  /* the node must have all of them; NULL: none */
	const struct sb_strlist *except; /* nodes that were tried; NULL: none */
};

/*
 * The node to ask for a new session, and its address (the caller's). SB_E_MAX_SESSIONS when all
 * that fit are full, SB_E_UNAVAILABLE when none takes sessions, SB_E_BASE_NOT_FOUND when none has
 * the template.
 */
int sb_fleet_view_pick(struct sb_fleet_view *v, const struct sb_fleet_want *want,
	const struct sb_fleet_pick_opts *o, char node[SB_FLEET_NAME_MAX + 1], char **address,
	struct sb_error *err);

/* Something was made or changed (`data`), or deleted (NULL), at `rev`: known from now on. */
void sb_fleet_view_told(struct sb_fleet_view *v, const char *session, const void *data, size_t len,
	int64_t rev);

struct sb_fleet_view_counts {
	size_t nodes, ready, alive, boxes;
	size_t bytes;      /* of memory for boxes, about */
	bool online;       /* a member of etcd tells of changes now */
	int64_t behind_ms; /* since it last did, or could have */
	int64_t damaged;   /* records that could not be read, since the start */
};
void sb_fleet_view_count(struct sb_fleet_view *v, struct sb_fleet_view_counts *out);

/* How many sessions a tenant has on record. */
size_t sb_fleet_view_tenant(struct sb_fleet_view *v, const char *tenant);

#endif
