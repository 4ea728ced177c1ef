/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_IDMAP_H
#define SB_HOST_IDMAP_H

#include <stdbool.h>
#include <sys/types.h>

#include <sb/error.h>

/*
 * The directory `dir` as a mount of its own in which what belongs to user `uid` and group `gid`
 * belongs to `owner`, and nothing on the disk changes; what belongs to others belongs to nobody. A
 * descriptor that paths begin at (O_PATH); the mount is gone with it. SB_E_UNSUPPORTED: this kernel
 * or file system cannot.
 */
int sb_idmap_open(int dir, uid_t uid, gid_t gid, uid_t owner, struct sb_error *err);

/*
 * Whether everything in the directory `dir` belongs to one user and one group, which are its own; 0
 * with the first that does not in `odd` (a path beneath it, cut if it is long); 1; or an error.
 */
int sb_idmap_uniform(int dir, char *odd, size_t size, struct sb_error *err);

#endif
