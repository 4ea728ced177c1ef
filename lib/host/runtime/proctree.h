/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_PROCTREE_H
#define SB_HOST_PROCTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Finds processes by a mark in their environment, which children inherit. A process that changes
 * its environment, its group and its parent gets away: this serves the runtime that isolates
 * nothing, and finds what a killed host left behind.
 */
#define SB_PROCTREE_MARK "SB_SANDBOX_MARK"

/*
 * Calls `fn` for every process with that mark, or one that begins with it when `mark` ends with a
 * slash ('*' in it stands for anything but a slash; NULL: none), for the members of the session of
 * `leader` (0: none), and for the children of all these. `pidfd` was opened before the process was
 * looked at, so a signal through it never hits another process. Returns for how many `fn` said
 * true.
 */
typedef bool (*sb_proctree_fn)(pid_t pid, int pidfd, void *arg);
size_t sb_proctree_visit(const char *mark, pid_t leader, sb_proctree_fn fn, void *arg);

/*
 * Sends `sig` once to each of these, also to those born meanwhile; 0 only counts. Returns how many
 * got it.
 */
size_t sb_proctree_signal(const char *mark, pid_t leader, int sig);

/* The parent of a process, 0 when that is not there. */
pid_t sb_proctree_parent(pid_t pid);

#endif
