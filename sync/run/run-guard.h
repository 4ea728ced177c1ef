/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RUN_GUARD_H
#define SBSYNC_RUN_GUARD_H

#include <limits.h>

#include <sync/plan/reconcile.h>
#include <sync/replica/replica.h>

/* The files of a local root, for the guard. `rep` must live as long. */
struct sb_run_guard {
	struct sb_guard_files files;
	char real_root[PATH_MAX];
	char config_paths[3][PATH_MAX];
	const char *configs[4];
};

/* Fills `g` in and returns its `files`. */
const struct sb_guard_files *sb_run_guard_files(struct sb_run_guard *g,
	const struct sb_replica *rep);

#endif
