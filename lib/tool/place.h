/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_PLACE_H
#define SB_TOOL_PLACE_H

#include <stdbool.h>

#include <base/strlist.h>
#include <sb/error.h>

/*
 * The place of a sandbox on the machine where it lives: a folder BASE/ID with a record of what
 * belongs to it, the main root (BASE/ID/root, or a directory the profile names) and the further
 * ones (BASE/ID/dirs/NN-NAME). The roots lie outside of each other and of the record, so none is
 * seen in another's sync. The record is written before anything else is made and removed last:
 * after a crash, the record leads to everything that was made.
 */
struct sb_place {
	char *id;       /* of the sandbox */
	char *instance; /* a random word made with it: tells it from a later one of the same id */
	char *root;     /* absolute */
	struct sb_strlist dirs;   /* absolute */
	struct sb_strlist labels; /* "KEY=value" */
	bool made_root;           /* the root was not there before */
	bool fresh;               /* it was made by this call */
};
void sb_place_free(struct sb_place *b);
SB_CLEANUP_VALUE(sb_place, sb_place_free)

struct sb_place_wish {
	const char *id; /* letters, digits, '-', '_', '.', not first; at most 64 */
	const char
		*instance; /* reattach to this one; NULL or "": whatever is there, else a new one */
	const char *root;  /* absolute, or from the home directory; NULL or "": in its folder */
	const char *const *names;  /* of the further roots; may be NULL */
	const char *const *labels; /* may be NULL */
	bool may_create;
};

/*
 * Makes the place, or finds it as it was made and ignores the other wishes. Finishes what a crash
 * interrupted. SB_E_SANDBOX_NOT_FOUND when it is not there, or another instance is, and may not be
 * made; SB_E_EXISTS when the root the profile names holds files and is not this sandbox's.
 */
int sb_place_prepare(const struct sb_place_wish *w, struct sb_place *out, struct sb_error *err);

/* All of `labels` (may be NULL) must be there. SB_E_SANDBOX_NOT_FOUND. */
int sb_place_find(const char *id, const char *instance, const char *const *labels,
	struct sb_place *out, struct sb_error *err);

/* Removes roots and record. Not there, or another instance there: success, nothing is touched. */
int sb_place_destroy(const char *id, const char *instance, struct sb_error *err);

/*
 * Where places are: $SBSYNC_BOX_DIR, $XDG_STATE_HOME/sandboxes, or ~/.local/state/sandboxes. A new
 * string.
 */
char *sb_place_base(struct sb_error *err);

#endif
