/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_DESTROY_H
#define SB_HOST_HOST_DESTROY_H

#include <host/hsess.h>

struct sb_host;

/*
 * Removes a session in DESTROYING from storage, database and map. The caller holds the slot;
 * afterwards `s->gone`.
 */
int sb_host_destroy_finish(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);

/*
 * host-pause.c: pauses a session whose time is over; its tools are killed. The worker calls it.
 */
int sb_host_pause_expired(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);

#endif
