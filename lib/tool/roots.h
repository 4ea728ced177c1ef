/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_ROOTS_H
#define SB_TOOL_ROOTS_H

#include <stddef.h>

#include <base/cleanup.h>
#include <sb/error.h>

/*
 * The directories that tools may touch. Immutable after it was made, so safe from several threads.
 *
 * A path is looked up in two steps: sb_roots_resolve follows the symlinks that stay inside and
 * gives a root and a path beneath it that has no symlink in it; whoever opens that path does so
 * with base/path.h, which follows none. So a path that is swapped for a symlink
 * between the steps makes the second one fail and cannot lead outside.
 */
struct sb_roots {
	struct sb_root {
		char *given; /* absolute, as the caller wrote it */
		char *path;  /* without symlinks */
		int fd;
	} * v;
	size_t n;
};

/*
 * The first one is where relative paths begin. All must be directories; blank and repeated ones are
 * left out.
 */
int sb_roots_open(const char *const *paths, size_t n, struct sb_roots *out, struct sb_error *err);
void sb_roots_close(struct sb_roots *r);
SB_CLEANUP_VALUE(sb_roots, sb_roots_close)

struct sb_roots_resolved {
	int fd;     /* of the root; borrowed */
	char *rel;  /* beneath it, "" for itself */
	char *path; /* the whole */
};
void sb_roots_resolved_free(struct sb_roots_resolved *r);
SB_CLEANUP_VALUE(sb_roots_resolved, sb_roots_resolved_free)

/*
 * Absolute, or relative to the first root; "." and ".." are allowed as long as they stay inside.
 * What does not exist yet resolves as far as it does. SB_E_INVAL for an empty path, SB_E_ESCAPE for
 * one that leads out of every root.
 */
int sb_roots_resolve(const struct sb_roots *r, const char *path, struct sb_roots_resolved *out,
	struct sb_error *err);

#endif
