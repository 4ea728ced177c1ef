/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_COMMIT_NAMES_H
#define SBSYNC_COMMIT_NAMES_H

/* Names that a commit gives and takes. Errors are in errno. */

/*
 * rename, with the flags of renameat2; where a directory of ours lacks write permission it is given
 * for the moment (DIRMETA sets it right).
 */
int sb_commit_names_rename(int fromfd, const char *from, int tofd, const char *to, unsigned flags);
/* The same for a removal. */
int sb_commit_names_unlink(int fd, const char *name, int flags);

#endif
