/* SPDX-License-Identifier: MIT */
#ifndef SB_FLEET_RECORD_H
#define SB_FLEET_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <base/strlist.h>
#include <base/strmap.h>
#include <sb/error.h>

/*
 * What a fleet has on record in etcd (doc/FLEET.md), as JSON. What is read must have every field
 * that is required and no wrong types; fields that are not known are kept out of the way of later
 * versions: they are ignored, and the key `schema` tells when that would be wrong.
 */

/* The version of all records under one prefix. */
#define SB_FLEET_SCHEMA 1

/* Names of nodes and of the fleet: lower-case letters, digits, '-' and '.', at most 63 bytes. */
#define SB_FLEET_NAME_MAX 63
bool sb_fleet_name_ok(const char *name);

enum sb_fleet_node_state {
	SB_FLEET_JOINING,  /* no health check has succeeded yet */
	SB_FLEET_READY,    /* takes sessions */
	SB_FLEET_DRAINING, /* takes none; those it has go on, or move */
	SB_FLEET_GONE,     /* its machine is given back */
};
const char *sb_fleet_node_state_name(enum sb_fleet_node_state s);

/* A host of the fleet. Zero-initialise; freed by sb_fleet_node_clear. */
struct sb_fleet_node {
	char id[SB_FLEET_NAME_MAX + 1];
	char *address; /* of its RPC: "http[s]://HOST:PORT" or "unix:PATH" */
	char *e2b;     /* addresses of its other interfaces; NULL: none */
	char *daytona;
	char *ssh;
	char *instance; /* the machine's id at whoever made it; NULL: nobody of the fleet */
	enum sb_fleet_node_state state;
	char *why;             /* of draining: "health", "operator", "scale-down"; NULL otherwise */
	bool cordoned;         /* by an operator: no new sessions, whatever the state */
	uint32_t max_sessions; /* 0: the host's own limit alone counts */
	struct sb_strmap labels;
	struct sb_strlist templates; /* base images it has */
};
void sb_fleet_node_clear(struct sb_fleet_node *n);
SB_CLEANUP_VALUE(sb_fleet_node, sb_fleet_node_clear)
int sb_fleet_node_write(const struct sb_fleet_node *n, struct sb_buf *out, struct sb_error *err);
/* `id` is the end of its key. SB_E_CORRUPT. */
int sb_fleet_node_read(struct sb_fleet_node *n, const char *id, const void *data, size_t len,
	struct sb_error *err);

/* What a host said last. A value. */
struct sb_fleet_load {
	bool healthy;
	uint32_t sessions, max_sessions; /* of the host, also those of nobody in the fleet */
	uint64_t mem_mb, mem_free_mb, disk, disk_free, cpus;
	uint32_t active_tools;
};
int sb_fleet_load_write(const struct sb_fleet_load *l, struct sb_buf *out, struct sb_error *err);
int sb_fleet_load_read(struct sb_fleet_load *l, const void *data, size_t len, struct sb_error *err);

enum sb_fleet_box_state {
	SB_FLEET_CREATING,   /* the host was asked, or will be */
	SB_FLEET_HERE,       /* the node has it */
	SB_FLEET_MOVING,     /* the node still has it; `to` is receiving it */
	SB_FLEET_DESTROYING, /* the node is asked to destroy it, until it has */
	SB_FLEET_WARM,       /* made ahead, nobody's yet */
};
const char *sb_fleet_box_state_name(enum sb_fleet_box_state s);

/* A session of the fleet. Zero-initialise; freed by sb_fleet_box_clear. */
struct sb_fleet_box {
	char node[SB_FLEET_NAME_MAX + 1];
	char to[SB_FLEET_NAME_MAX + 1]; /* of MOVING */
	enum sb_fleet_box_state state;
	char *tenant;   /* whose quota it counts for; NULL: nobody's */
	char *template; /* NULL: an empty one */
	struct sb_strmap labels;
	int64_t created_ms; /* Unix time by the clock of the front end; only shown */
};
void sb_fleet_box_clear(struct sb_fleet_box *b);
SB_CLEANUP_VALUE(sb_fleet_box, sb_fleet_box_clear)
int sb_fleet_box_write(const struct sb_fleet_box *b, struct sb_buf *out, struct sb_error *err);
int sb_fleet_box_read(struct sb_fleet_box *b, const void *data, size_t len, struct sb_error *err);

#endif
