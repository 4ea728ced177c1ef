/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_MODEL_H
#define SB_TESTS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A tiny model of the three-way rules, for comparison with sync/plan/reconcile.c: trees are arrays
 * indexed by a fixed set of paths, the outcome is two lists of paths. Nothing of the engine is used
 * in it.
 */
enum { MODEL_NONE, MODEL_DIR, MODEL_FILE, MODEL_LINK };
enum { MODEL_TO = 1, MODEL_FROM = 2, MODEL_BOTH = 3 };
enum model_policy { MODEL_KEEP_BOTH, MODEL_TAKE_LOCAL, MODEL_TAKE_RUNTIME };

#define MODEL_LABEL "s"
#define MODEL_TOPS 4
#define MODEL_MIDS 3
#define MODEL_LOWS 2
#define MODEL_PATHS (MODEL_TOPS * (1 + MODEL_MIDS * (1 + MODEL_LOWS)))

struct model_node {
	uint8_t type;
	uint16_t mode;
	uint32_t content; /* of files and links; 0 for directories */
	uint32_t mtime;
	uint32_t link; /* files: names with the same number, not 0, are one file */
};

struct model_tree {
	struct model_node v[MODEL_PATHS];
};

struct model_row {
	char path[96];
	struct model_node n;
};

struct model_list {
	struct model_row v[4 * MODEL_PATHS];
	size_t n;
};

struct model_result {
	struct model_list local, runtime; /* sorted by path */
	char conflicts[MODEL_PATHS][96];  /* saved versions, "" where none is needed */
	uint8_t at[MODEL_PATHS];          /* which path each belongs to */
	size_t n_conflicts;
	size_t n_revived;
};

uint64_t model_random(uint64_t *seed);
uint32_t model_below(uint64_t *seed, uint32_t n);

const char *model_path(size_t i);
size_t model_parent(size_t i); /* MODEL_PATHS at the top */

/*
 * A tree from nothing, and a few edits of one: contents, modes, times, kinds, renames, new, gone.
 */
void model_make(struct model_tree *t, uint64_t *seed);
void model_edit(struct model_tree *t, unsigned edits, uint64_t *seed);
/* The same with hard links: names added and taken away, edits in place and of one name. */
void model_edit_links(struct model_tree *t, unsigned edits, uint64_t *seed);

void model_run(const struct model_tree *base, const struct model_tree *local,
	const struct model_tree *runtime, int direction, enum model_policy policy,
	struct model_result *out);

/* A tree as a list, sorted by path. */
void model_list_of(const struct model_tree *t, struct model_list *out);
/* The first difference, as text in `why`; false: none. `dir_times`: those of directories count. */
bool model_differ(const struct model_list *a, const struct model_list *b, bool dir_times, char *why,
	size_t size);
bool model_has_content(const struct model_list *l, const struct model_node *n);

#endif
