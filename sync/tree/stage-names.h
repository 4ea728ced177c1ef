/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_STAGE_NAMES_H
#define SBSYNC_STAGE_NAMES_H

#include <stdbool.h>
#include <string.h>

/*
 * The names of the stage, the directory that a sync makes in a root. It is no part of the tree: the
 * scan and the watch pass over it, and no plan may name a path in it. sync/replica/stage.h uses it.
 */
#define SB_STAGE_NAME ".sbsync-stage"

/* Names inside the stage directory. */
#define SB_STAGE_NEW "new"         /* what this transfer has brought */
#define SB_STAGE_OLD "old"         /* what an interrupted transfer left */
#define SB_STAGE_TRASH "trash"     /* what the commit took out of the tree */
#define SB_STAGE_JOURNAL "journal" /* what the commit does: see sync/replica/journal.h */
#define SB_STAGE_DONE "done"       /* the journal once the commit has done all of it */

/* Is this path of the root the stage directory, or in it? */
static inline bool
sb_stage_holds(const char *path)
{
	size_t n = sizeof SB_STAGE_NAME - 1;

	return strncmp(path, SB_STAGE_NAME, n) == 0 && (!path[n] || path[n] == '/');
}

#endif
