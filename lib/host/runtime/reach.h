/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_REACH_H
#define SB_HOST_REACH_H

#include <sys/types.h>

#include <sb/cancel.h>
#include <sb/error.h>

/*
 * Connects to a port of one command, and never to what else listens under that number on the host
 * or in another session. `leader` is the command's first process as the host sees it. Both return a
 * connected stream socket, SB_E_UNAVAILABLE when the command does not listen there, SB_E_TIMEOUT at
 * `d`.
 */

/* The command has a network namespace of its own, found by its processes: 127.0.0.1 in there. */
int sb_reach_namespace(const char *mark, pid_t leader, unsigned port, sb_deadline d, int *out_fd,
	struct sb_error *err);

/*
 * The command shares the host's network: the loopback address, provided that every socket listening
 * there under that number is held by a process of the command. SB_E_DENIED when somebody else's is
 * among them.
 */
int sb_reach_owned(const char *mark, pid_t leader, unsigned port, sb_deadline d, int *out_fd,
	struct sb_error *err);

#endif
