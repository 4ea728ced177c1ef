/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_OVERLAY_LAYER_H
#define SB_HOST_OVERLAY_LAYER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <base/str.h>
#include <sb/host.h>

/*
 * Layer directories of the overlay storage: `N/fs` with the files and `N/work` for the kernel, N in
 * hex, beneath the open directory `layers`. What overlayfs writes into a layer:
 */
#define SB_OVERLAY_XATTR "trusted.overlay."
#define SB_OVERLAY_OPAQUE SB_OVERLAY_XATTR "opaque"     /* "y": hides the lower directory */
#define SB_OVERLAY_REDIRECT SB_OVERLAY_XATTR "redirect" /* where the lower directory is */
#define SB_OVERLAY_NAME_MAX 24

/* "1a", or "1a/fs" and the like with `sub`. */
const char *sb_overlay_layer_name(uint64_t id, const char *sub, char out[SB_OVERLAY_NAME_MAX]);

/* A character device 0:0: the name is gone. */
bool sb_overlay_layer_is_whiteout(const struct stat *st);

/* Makes N with `fs` (attributes of the directory `like`, unless that is -1) and `work`. */
int sb_overlay_layer_make(int layers, uint64_t id, int like, struct sb_error *err);
/* The open `fs`. */
int sb_overlay_layer_open(int layers, uint64_t id, struct sb_error *err);
/* Moves N to the directory `trash`. Not there is success. */
int sb_overlay_layer_trash(int layers, uint64_t id, int trash, struct sb_error *err);
/* Removes `work`: the layer is no upper any more. */
int sb_overlay_layer_settle(int layers, uint64_t id, struct sb_error *err);
/* The kernel may mount it again although it was `volatile`. */
int sb_overlay_layer_unmark(int layers, uint64_t id, struct sb_error *err);

/*
 * Owner, mode, times and extended attributes of `st` and `from` onto `to`; those of overlayfs only
 * with `marks`. Access time, too.
 */
int sb_overlay_layer_copy_meta(int from, int to, const struct stat *st, bool marks,
	struct sb_error *err);
/* The value of a mark of overlayfs, or NULL: it has none. `*bad` when it cannot be read. */
char *sb_overlay_layer_mark(int fd, const char *name, bool *bad);

/*
 * Walks a layer: its bytes on the disk go to `bytes`; with `sync` every file's data is written and
 * waited for.
 */
int sb_overlay_layer_measure(int fs, bool sync, uint64_t *bytes, struct sb_error *err);

#endif
