/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_PATH_H
#define SB_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include <sb/error.h>

/*
 * Operations beneath a root directory, by descriptor. A relative path is components separated by
 * single
 * '/', none of them empty, "." or "..", no leading or trailing slash, each at most 255 bytes; "" is
 * the root itself. No component is ever followed through a symlink or a magic link of /proc; mounts
 * are crossed. Paths longer than PATH_MAX work (walked in pieces). All return SB_E_ESCAPE for a
 * path that is not of this form or that meets a symlink on its way. Names in error messages are
 * escaped. Safe from several threads.
 */

/* Checks the form only. `len` excludes any NUL; a NUL inside is refused. */
int sb_path_check(const char *rel, size_t len, struct sb_error *err);

/* Opens the root directory itself (symlinks in `path` are followed here, once). */
int sb_path_open_root(const char *path, struct sb_error *err);

/*
 * Opens `rel` beneath `rootfd` with `flags` (O_CLOEXEC | O_NOFOLLOW added) and returns the
 * descriptor. openat2 where the kernel allows it, else the component walk; sb_path_force_walk(true)
 * forces the walk (tests). With O_PATH a symlink as last component is opened itself.
 */
int sb_path_open(int rootfd, const char *rel, int flags, mode_t mode, struct sb_error *err);
void sb_path_force_walk(bool on);

/*
 * Opens the directory that holds `rel` (O_PATH is not used: the descriptor can be fsynced) and
 * points `out_leaf` at the last component inside `rel`. For "" the root is its own parent and the
 * leaf is ".".
 */
int sb_path_open_parent(int rootfd, const char *rel, const char **out_leaf, struct sb_error *err);

/* lstat beneath the root. SB_E_NOTFOUND when it, or a directory on its way, is not there. */
int sb_path_stat(int rootfd, const char *rel, struct stat *out, struct sb_error *err);

/*
 * Makes the directory and its missing parents (`mode` minus the umask); existing ones are left as
 * they are. SB_E_EXISTS when something else is in the way.
 */
int sb_path_mkdirs(int rootfd, const char *rel, mode_t mode, struct sb_error *err);

/*
 * Removes `name` in the directory `dirfd`, whatever it is, with everything beneath it; never leaves
 * the file system it is on, never follows a symlink, makes unwritable directories writable on the
 * way. Not there is success. SB_E_STATE when something is mounted on or beneath it, SB_E_CHANGED
 * when it was moved away meanwhile; what was removed before stays removed.
 */
int sb_path_remove_tree(int dirfd, const char *name, struct sb_error *err);

#endif
