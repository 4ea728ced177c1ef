/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_OVERLAY_STATE_H
#define SB_HOST_OVERLAY_STATE_H

#include <base/str.h>
#include <base/strlist.h>
#include <host/storage/overlay-node.h>

/*
 * What the log says, in memory: sessions and snapshots upon a tree of nodes. Nothing in
 * here touches the disk. Not thread-safe.
 */
struct sb_overlay_snap {
	char *name;
	char *parent;                 /* the snapshot before it, "" for none */
	struct sb_overlay_node *node; /* NULL: the base itself */
	int64_t time_ns;
	struct sb_strlist holds;
};

struct sb_overlay_session {
	struct sb_overlay_session *next; /* hash chain */
	char *id;
	char *base; /* "" for none */
	uint64_t base_ino;
	int64_t base_btime_ns;
	uint32_t owner;                /* whom what is in the base belongs to; 0: as on disk */
	char *origin_id, *origin_snap; /* "" for none */
	char *head;                    /* the snapshot it stands on, "" for none */
	struct sb_overlay_node *node;
	uint64_t upper;
	uint64_t quota, project;
	int64_t time_ns;
	uint64_t *stack; /* the layers of the mount in force, upper first; none: not mounted */
	size_t n_stack;
	struct sb_overlay_snap **snaps; /* oldest first */
	size_t n_snaps, cap_snaps;
	void *mine; /* of the storage; freed by its `forget` */
};

struct sb_overlay_state {
	struct sb_overlay_nodes tree;
	struct sb_overlay_session **sessions;
	size_t n_sessions;
	uint64_t next_project;
	char boot[40];
	bool clean;       /* the last record says that all is on the disk, */
	int64_t clean_ns; /* at that time */
	void (*forget)(void *mine);
};

int sb_overlay_state_init(struct sb_overlay_state *s, struct sb_error *err);
void sb_overlay_state_free(struct sb_overlay_state *s);

/* Does what the record says. SB_E_CORRUPT when it makes no sense here; SB_E_NOMEM. */
int sb_overlay_state_apply(struct sb_overlay_state *s, const struct sb_overlay_rec *rec,
	struct sb_error *err);
/* Appends records to `l` that make the same state. `arg` is the state. */
int sb_overlay_state_dump(struct sb_overlay_log *l, void *arg, struct sb_error *err);

struct sb_overlay_session *sb_overlay_state_session(const struct sb_overlay_state *s,
	const char *id);
struct sb_overlay_snap *sb_overlay_state_snap(const struct sb_overlay_session *se,
	const char *name);
/* Every session, one call each; stops at the first error. */
int sb_overlay_state_each(struct sb_overlay_state *s,
	int (*fn)(struct sb_overlay_session *se, void *arg, struct sb_error *err), void *arg,
	struct sb_error *err);

#endif
