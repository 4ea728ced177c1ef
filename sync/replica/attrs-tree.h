/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_ATTRS_TREE_H
#define SBSYNC_ATTRS_TREE_H

#include <base/strlist.h>
#include <sync/tree/attrs.h>
#include <sync/tree/manifest.h>

/* What files and directories of `m`, beneath the root, have of these kinds. */
int sb_attrs_tree_read(int rootfd, const struct sb_manifest *m, unsigned kinds,
	struct sb_attrs *out, struct sb_error *err);

/*
 * Gives each path of `want` exactly that set of want->kinds; other attributes stay. Modes and times
 * are as before. What `m` does not have, is not as there, or the system refuses goes into `refused`
 * (paths). Entries of `m` lose their ctime, which has moved.
 */
int sb_attrs_tree_write(int rootfd, struct sb_manifest *m, const struct sb_attrs *want,
	struct sb_strlist *refused, struct sb_error *err);

#endif
