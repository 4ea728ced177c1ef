/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_GUARD_H
#define SBSYNC_GUARD_H

#include <stdbool.h>

/*
 * What a change that comes from a sandbox may do to the machine it comes to. A name is judged without regard to case and to the
 * trailing dots and spaces that some file systems drop.
 */
enum sb_guard {
	SB_GUARD_NONE,
	SB_GUARD_GIT,      /* git runs it or obeys it: not accepted */
	SB_GUARD_AUTOEXEC, /* a tool runs it by itself: accepted, but told */
};

/* `switches` is set when the entry at a path named .git changes its kind (file or directory). */
enum sb_guard sb_guard_path(const char *path, bool switches);

/* Does a symlink at `path` with this target lead out of the root? */
bool sb_guard_escapes(const char *path, const char *target);

#endif
