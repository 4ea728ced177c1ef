/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_REPLICA_H
#define SBSYNC_REPLICA_H

#include <stdbool.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/cancel.h>
#include <sb/log.h>
#include <sync/scan/rules.h>
#include <sync/tree/manifest.h>
#include <sync/replica/recall.h>
#include <sync/scan/scan.h>
#include <sync/codec/store.h>

/*
 * One side of a pair: a root directory, the state kept for it, and what the last scan found.
 * Controller and agent use the same code; only the role (and with it the state folder) differs.
 */
struct sb_replica_opts {
	size_t size;
	const char *root;      /* path of the root directory */
	const char *state_dir; /* NULL: the default (sb_replica_state_dir) */
	const char *role;      /* "local" or "runtime" */
	uint8_t pair[16];      /* names the state; all zero: keep none */
	bool create;           /* a missing root is an empty one */
	bool readonly;         /* never change it: no lock, no recovery of an interrupted commit */
	int lock_ms;           /* how long to wait for another sync that works on it */
	int peer;              /* a descriptor whose hang-up ends that wait; -1: none */
	struct sb_recall *recall; /* outlives the replica; NULL: every file is loaded */
	const struct sb_cancel *cancel;
	struct sb_log log;
};
#define SB_REPLICA_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_replica_opts), .role = "local", .peer = -1 \
	}

struct sb_replica {
	char *root;
	int rootfd;  /* -1 while the root is missing */
	int statefd; /* -1 when no state is kept */
	bool create;
	bool readonly;
	int lock_ms, peer;
	bool recovered; /* opening it finished an interrupted commit */
	const struct sb_cancel *cancel;
	struct sb_log log;
	struct sb_recall *recall;
	struct sb_manifest *base;      /* what both sides last agreed on, or NULL */
	struct sb_recall_tag base_tag; /* code that changes or replaces the base clears this */
	struct sb_digest base_rules;   /* digest of the rules it was made with */
	struct sb_scan scan;           /* scan.manifest is NULL before sb_replica_scan */
	struct sb_store *store;        /* NULL when none is kept */
	int recipefd;                  /* -1 before sb_replica_recipes, or when none are kept */
};

/*
 * Opens the root, locks it (SB_E_LOCKED when another sync works on it), finishes an interrupted
 * commit, loads the base. A missing root is SB_E_NOTFOUND unless `create`; something else than a
 * directory there is SB_E_INVAL.
 */
struct sb_replica *sb_replica_open(const struct sb_replica_opts *opts, struct sb_error *err);
void sb_replica_free(struct sb_replica *r);
SB_CLEANUP_PTR(sb_replica, sb_replica_free)

/* Makes a missing root with its parents, opens and locks it. Does nothing when it is there. */
int sb_replica_make_root(struct sb_replica *r, struct sb_error *err);

/*
 * Scans with the cache of the state folder. A missing root gives an empty manifest. `o`'s cache is
 * set by this call.
 */
int sb_replica_scan(struct sb_replica *r, struct sb_scan_opts *o, struct sb_error *err);

/* Saves the scan cache; a failure does no harm and is only logged. */
void sb_replica_save_cache(struct sb_replica *r, const struct sb_manifest *m);
/*
 * The same after a sync that hashed or brought `files` files of `bytes`. Does nothing when the next
 * scan can read those again in less time than writing the cache takes.
 */
void sb_replica_update_cache(struct sb_replica *r, uint64_t files, uint64_t bytes);

/*
 * Saves `m` as the base, made under these rules, and keeps it loaded (takes it over). NULL forgets
 * the base.
 */
int sb_replica_save_base(struct sb_replica *r, struct sb_manifest *m, const struct sb_digest *rules,
	struct sb_error *err);

/* Saves `m` as the base for the next run; none is loaded afterwards. */
int sb_replica_write_base(struct sb_replica *r, const struct sb_manifest *m,
	const struct sb_digest *rules, struct sb_error *err);

/*
 * Opens the base store of this side on first use; NULL without state or when it cannot be opened
 * (logged).
 */
struct sb_store *sb_replica_store(struct sb_replica *r);

/* The folder of recipes of large files (delta-recipe.h), made on first use; -1 without state. */
int sb_replica_recipes(struct sb_replica *r);

/*
 * $SBSYNC_STATE_DIR, $XDG_STATE_HOME/sbsync or ~/.local/state/sbsync. NULL when none of them is
 * set.
 */
char *sb_replica_state_dir(struct sb_error *err);

#endif
