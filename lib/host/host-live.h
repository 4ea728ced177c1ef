/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_LIVE_H
#define SB_HOST_HOST_LIVE_H

#include <host/hsess.h>
#include <host/storage/storage.h>

struct sb_host;

/*
 * What the storage asks of a session while it exchanges the workspace: that all stand still, that
 * the box lets go of the old and takes the new one.
 */
struct sb_host_live {
	struct sb_host *h;
	struct sb_hsess *s;
	struct sb_storage_live ops; /* for the storage */
	bool restarted;             /* the box could not take it; the next command makes another */
};

/* From begin to end nothing is started in the workspace. The caller holds the slot, and no `mu`. */
void sb_host_live_begin(struct sb_host *h, struct sb_hsess *s, struct sb_host_live *out);
void sb_host_live_end(struct sb_host_live *l);

#endif
