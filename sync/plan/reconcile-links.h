/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RECONCILE_LINKS_H
#define SBSYNC_RECONCILE_LINKS_H

#include <sync/plan/reconcile.h>

/*
 * The three-way rules of hard links. Contents, modes and times are settled path by path, as if
 * there were no links; then this decides which names are one file, and makes both lists of changes
 * say so.
 *
 * Of two names each tree says that they are one file, that they are two, or nothing, when one of
 * them is not there. Whoever changed that since the base decides; without a base they are two.
 * Names whose content, mode or time differ in the outcome are never one file. A name that a guard
 * protects stays the file it is.
 *
 * What is written never goes through a link: a file that shares its inode with names that take
 * another course gets an inode of its own.
 */

/* `out` holds the sorted changes without any leaders. They are sorted afterwards, too. */
int sb_reconcile_links(const struct sb_manifest *base, const struct sb_manifest *local,
	const struct sb_manifest *runtime, const struct sb_reconcile_opts *opts,
	struct sb_reconciled *out, struct sb_error *err);

/* Sorts the changes as a difference must be: pre-order, DEL before PUT at one path. */
void sb_reconcile_sort(struct sb_diff *d);

#endif
