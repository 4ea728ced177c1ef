/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_OVERLAY_NODE_H
#define SB_HOST_OVERLAY_NODE_H

#include <host/storage/overlay-log.h>

/*
 * The tree of states that the overlay storage keeps, and the directories that these need. Nothing
 * in here touches the disk. Not thread-safe.
 */
#define SB_OVERLAY_UNMEASURED UINT64_MAX

/* A state of a workspace: `layer` upon `parent`, or upon the base. */
struct sb_overlay_node {
	struct sb_overlay_node *next; /* hash chain */
	struct sb_overlay_node *parent;
	uint64_t id;
	uint64_t layer; /* a directory */
	uint64_t flat;  /* a directory that equals `layer` and all below it but the base; 0: none */
	uint64_t bytes; /* of `layer`, or SB_OVERLAY_UNMEASURED */
	bool durable;
	unsigned refs;  /* names, sessions, children, pins; gone when the last goes */
	unsigned named; /* of these: names, sessions and pins */
};

struct sb_overlay_u64s {
	uint64_t *v;
	size_t n, cap;
};
int sb_overlay_node_u64s_add(struct sb_overlay_u64s *v, uint64_t x, struct sb_error *err);

struct sb_overlay_nodes {
	struct sb_overlay_node **bucket;
	size_t n_buckets, n;
	struct sb_overlay_ref *refs; /* directories and who needs them, open addressing */
	size_t n_refs, cap_refs;
	struct sb_overlay_u64s dead; /* directories that nobody needs any more */
	uint64_t next_id;            /* never used yet, for nodes and directories */
};

int sb_overlay_node_init(struct sb_overlay_nodes *t, struct sb_error *err);
void sb_overlay_node_free_all(struct sb_overlay_nodes *t);

struct sb_overlay_node *sb_overlay_node_find(const struct sb_overlay_nodes *t, uint64_t id);
/* The same for a number out of a record, where 0 is the base: NULL. SB_E_CORRUPT. */
int sb_overlay_node_named(const struct sb_overlay_nodes *t, uint64_t id,
	struct sb_overlay_node **out, struct sb_error *err);
/* The new node of a record, with no reason to be there yet: the caller pins it. */
int sb_overlay_node_add(struct sb_overlay_nodes *t, const struct sb_overlay_rec *r,
	struct sb_overlay_node **out, struct sb_error *err);
/* What a NODE record says: a new node, or another layer or parent of an old one. */
int sb_overlay_node_apply(struct sb_overlay_nodes *t, const struct sb_overlay_rec *r,
	struct sb_error *err);

/* Keeps a node (NULL is allowed), or a directory, whatever happens to the others. */
void sb_overlay_node_pin(struct sb_overlay_node *n);
void sb_overlay_node_unpin(struct sb_overlay_nodes *t, struct sb_overlay_node *n);
int sb_overlay_node_keep(struct sb_overlay_nodes *t, uint64_t layer, struct sb_error *err);
void sb_overlay_node_let_go(struct sb_overlay_nodes *t, uint64_t layer);
/* Whether anybody needs the directory. */
bool sb_overlay_node_needs(const struct sb_overlay_nodes *t, uint64_t layer);

/*
 * The layers from `n` down, without the base, behind what is in `out` already; their number, or
 * SB_E_LIMIT past `max`.
 */
int sb_overlay_node_stack(const struct sb_overlay_node *n, uint64_t *out, size_t at, size_t max,
	struct sb_error *err);

#endif
