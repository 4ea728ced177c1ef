/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_PROCMON_H
#define SB_HOST_PROCMON_H

#include <host/proc.h>

/*
 * The thread that notices when processes end or become ready, and keeps their logs small. It starts
 * with the first process.
 */
int sb_procmon_add(struct sb_host *h, struct sb_hsess *s, struct sb_host_proc *p,
	struct sb_error *err);
/* Ends the thread and every port; waits until no proxy uses the host any more. */
void sb_procmon_stop(struct sb_host *h);

#endif
