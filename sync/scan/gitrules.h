/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_GITRULES_H
#define SBSYNC_GITRULES_H

#include <stdbool.h>

#include <sb/log.h>
#include <sync/scan/rules.h>

/*
 * What --gitignore means besides .gitignore files, for a root that is the top of a git working
 * tree, and for submodules in it. To be called before the scan that uses `rules`.
 *
 * With `collect`: info/exclude and core.excludesFile (also its default place) become rules, and
 * with core.ignorecase git's rules are compared without regard to case. In any case: files that git
 * tracks although its rules match them are set as tracked (sb_rules_set_tracked), so that they are
 * synced. Then the .gitignore files on the way to them count as they are now (`collect`), or as
 * `rules` has them. An index that cannot be read is told to `log`; then nothing is tracked.
 */
int sb_gitrules_prepare(int rootfd, struct sb_rules *rules, bool collect, const struct sb_log *log,
	struct sb_error *err);

#endif
