/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_OVERLAY_MOUNT_H
#define SB_HOST_OVERLAY_MOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/error.h>

/* So many layers fit into the options of one mount(2), however large their numbers are. */
#define SB_OVERLAY_LAYERS_MAX 100

/* What to mount: layers by number, top first, upon the open directory `base` (-1: none). */
struct sb_overlay_mount {
	int layers; /* their directory */
	const uint64_t *stack;
	size_t n;
	int base;
	/*
	 * NULL, or: `base` is a mount of its own that is nowhere in the file tree, and this is a
	 * directory to be made for it. Kernels before 6.15 want it there while they mount.
	 */
	const char *base_place;
	bool place_base;  /* do so at once, without trying */
	bool writable;    /* the first of `stack` is the upper */
	bool is_volatile; /* nothing waits for the disk */
};

/* Mounts it at `path`, nosuid and nodev. SB_E_LIMIT for too many layers. */
int sb_overlay_mount_at(const struct sb_overlay_mount *m, const char *path, struct sb_error *err);
/* 0: unmounted (or was not mounted); 1: in use. With `force` it goes, whoever uses it. */
int sb_overlay_mount_leave(const char *path, bool force, struct sb_error *err);
/*
 * The states of `m`, read-only, as an open directory; nothing stays mounted at `place`, which must
 * be an empty directory.
 */
int sb_overlay_mount_view(const struct sb_overlay_mount *m, const char *place,
	struct sb_error *err);

/*
 * Every overlay that is mounted beneath the directory `root`: the rest of the path, and the number
 * of its upper (0: none).
 */
typedef int (
	*sb_overlay_mount_fn)(const char *rest, uint64_t upper, void *arg, struct sb_error *err);
int sb_overlay_mount_each(const char *root, sb_overlay_mount_fn fn, void *arg,
	struct sb_error *err);

#endif
