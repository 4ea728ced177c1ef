/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_BTRFS_LAYER_H
#define SB_HOST_BTRFS_LAYER_H

#include <sb/host.h>

/*
 * The difference of two states of a workspace as a layer in the sense of overlayfs, so that streams
 * are the same for both storages: files that are new or other, directories, whiteouts, opaque
 * directories (doc/STORAGE.md).
 */

/* Makes the layer in the empty directory `to` that turns the snapshot `old` into `now`. */
int sb_btrfs_layer_build(int old, int now, int to, const struct sb_host_call *call,
	struct sb_error *err);
/* Turns `tree`, a copy of the read-only `old`, into what the layer `from` says. */
int sb_btrfs_layer_apply(int from, int old, int tree, const struct sb_host_call *call,
	struct sb_error *err);

#endif
