/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_GUARD_H
#define SBSYNC_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include <sync/tree/manifest.h>

/*
 * Judges what a change from a sandbox could do to the machine that takes it. Names are compared
 * without regard to case and to the trailing dots and spaces that some file systems drop.
 */
enum sb_guard {
	SB_GUARD_NONE,
	SB_GUARD_GIT,      /* git runs it or obeys it: not accepted */
	SB_GUARD_PROJECT,  /* we obey it in later runs: not accepted */
	SB_GUARD_AUTOEXEC, /* a tool runs it by itself: accepted, but reported */
};

/*
 * What stands at a path named .git decides which repository git works on: only a directory that is
 * new, or stays one, is harmless. A file or symlink leads git to any other directory with a
 * configuration in it. Types are enum sb_entry_type, 0: nothing.
 */
static inline bool
sb_guard_redirects(uint8_t old_type, uint8_t new_type)
{
	return new_type != SB_ENTRY_DIR || (old_type && old_type != SB_ENTRY_DIR);
}

/* `redirects` matters for a path named .git. */
enum sb_guard sb_guard_path(const char *path, bool redirects);

/* Does a symlink at `path` with this target lead out of the root? */
bool sb_guard_escapes(const char *path, const char *target);

#endif
