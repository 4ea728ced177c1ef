/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_CONFINED_H
#define SBSYNC_CONFINED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sb/error.h>

/*
 * A child of the engine for work on what a sandbox sent: work that may abort, run out of memory,
 * never end or be taken over.
 *
 * It is a fork without exec: libsbsync lives in programs that are not ours and in the static agent,
 * so there is no program of ours that is certain to be there. That is sound although the parent has
 * threads: between fork and _exit the child calls only libraries that take no locks, the allocator,
 * which glibc makes usable after fork, and system calls. All signals are blocked across the fork
 * and get their defaults in the child, so no handler of the program runs there; all descriptors but
 * the ones it needs are closed. confined-filter.h leaves it these and memory, and nothing else.
 *
 * It is killed by pidfd, as its number may be another's when the program ignores SIGCHLD.
 */
struct sb_confined {
	pid_t pid; /* 0: none */
	int pidfd; /* -1: it is gone, or the kernel has none */
	bool no_pidfd;
};

struct sb_confined_opts {
	/* Its descriptors: keep[i] becomes number i of the child, -1 /dev/null; nothing else is
	 * open. */
	int keep[4];
	uint64_t max_memory; /* beyond what the process has */
	unsigned max_cpu_s;  /* 0: no limit */
	/* Runs in the child, which ends when it returns. `confined`: what confined-filter.h said.
	 */
	void (*main)(bool confined, void *arg);
	void *arg;
};

int sb_confined_start(struct sb_confined *c, const struct sb_confined_opts *o,
	struct sb_error *err);
/* Waits for its end, `kill` first. Its wait status, or -1 when someone else took it. */
int sb_confined_end(struct sb_confined *c, bool kill);

#endif
