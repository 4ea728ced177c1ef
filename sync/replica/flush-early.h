/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_FLUSH_EARLY_H
#define SBSYNC_FLUSH_EARLY_H

#include <base/cleanup.h>

/*
 * Writes a file system's buffers to the disk again and again while a long transfer goes on, so that
 * the one flush that counts, at its end, finds little left. It promises nothing itself and leaves
 * errors to that flush: the kernel reports an error once to each file description, and the thread
 * has one of its own.
 */
struct sb_flush_early;

/*
 * The file system of directory `dirfd`. NULL when it cannot start, which is no error. It writes
 * nothing in the first half second.
 */
struct sb_flush_early *sb_flush_early_start(int dirfd);
/*
 * Waits for a flush that is under way, which the caller's own would have to wait for as well. NULL
 * is allowed.
 */
void sb_flush_early_stop(struct sb_flush_early *f);
SB_CLEANUP_PTR(sb_flush_early, sb_flush_early_stop)

#endif
