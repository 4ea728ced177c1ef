/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SESSION_BASE_H
#define SBSYNC_SESSION_BASE_H

#include <sync/scan/rules.h>
#include <sync/tree/manifest.h>

/* What the next base keeps of the old one. */

/* In `m`, the entry of the old base stays at this path. */
int sb_session_base_revert(struct sb_manifest *m, const struct sb_manifest *base, const char *path,
	struct sb_error *err);

/*
 * In `m`, what is at or beneath `path` goes as far as neither side has it: a commit may have
 * emptied a directory that it could not replace then.
 */
int sb_session_base_drop_gone(struct sb_manifest *m, const struct sb_manifest *local,
	const struct sb_manifest *far, const char *path, struct sb_error *err);

/*
 * In `m`, all stays that `rules` exclude: what is left out of one run is still what both sides
 * agreed on last.
 */
int sb_session_base_retain(struct sb_manifest *m, const struct sb_manifest *base,
	struct sb_rules *rules, struct sb_error *err);

#endif
