/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_WORKER_H
#define SB_HOST_WORKER_H

#include <host/hsess.h>

struct sb_host;

/*
 * The background thread: checks the health, finishes destroys that did not come through, removes
 * marked snapshots.
 */
int sb_host_worker_start(struct sb_host *h, struct sb_error *err);
void sb_host_worker_stop(struct sb_host *h);
/* Tells the thread that there is something to do. */
void sb_host_worker_poke(struct sb_host *h);

/* Finishes a session in DESTROYING that nobody works on: kills its tools and processes first. */
int sb_host_worker_reap(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);

#endif
