/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RECEIVE_LINKS_H
#define SBSYNC_RECEIVE_LINKS_H

#include <sync/replica/journal.h>
#include <sync/tree/manifest.h>

/*
 * Whatever is done to one name of a hard-linked file moves the ctime of all its names. Those of
 * `m`, as it was before `ops` were done, lose the ctime they had (0: not known), so that nobody
 * takes our own commit for a change by somebody else.
 */
int sb_receive_links_forget(const struct sb_journal *ops, struct sb_manifest *m,
	struct sb_error *err);

#endif
