/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_OVERLAY_VIEW_H
#define SB_HOST_OVERLAY_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include <sb/host.h>

/*
 * Several layers, one on top of the other, read as overlayfs would read them, without what is below
 * them: what their union says about a lower tree. The rules are the kernel's:
 *
 * - The topmost entry of a name wins; a whiteout says that there is none.
 * - Directories of a name are one, down to the first that is opaque or the first entry that is no
 *   directory.
 * - A directory with a redirect continues, in the layers below its own, at the place that names:
 *   another name in the same directory, or a path from the root, whose own directories may have
 *   redirects, too.
 */
struct sb_overlay_view {
	const int *fds; /* the open `fs` of the layers, top first */
	size_t n;
};

/* A directory of the union. */
struct sb_overlay_vdir {
	struct sb_overlay_vpart {
		size_t layer;
		char *path; /* in the layer, "" for its root */
	} * v;              /* top first; the first has the attributes */
	size_t n;
	char *low; /* which directory below the layers shows through, "" its root; NULL: none */
};
void sb_overlay_view_root_free(struct sb_overlay_vdir *d);
int sb_overlay_view_root(const struct sb_overlay_view *v, struct sb_overlay_vdir *out,
	struct sb_error *err);

enum sb_overlay_ventry_kind { SB_OVERLAY_V_LEAF, SB_OVERLAY_V_WHITEOUT, SB_OVERLAY_V_DIR };

struct sb_overlay_ventry {
	enum sb_overlay_ventry_kind kind;
	char *name;
	size_t layer; /* LEAF: where it is */
	char *path;
	struct sb_overlay_vdir dir; /* DIR */
};
/* What the union says about the names in `d`, sorted. */
int sb_overlay_view_list(const struct sb_overlay_view *v, const struct sb_overlay_vdir *d,
	struct sb_overlay_ventry **out, size_t *out_n, struct sb_error *err);
void sb_overlay_view_list_free(struct sb_overlay_ventry *e, size_t n);

/* The place of `name` below, if `d` shows one through: a new string, or NULL. */
char *sb_overlay_view_natural(const struct sb_overlay_vdir *d, const char *name);

/*
 * Makes one layer in the empty directory `to` that says the same as all of them, of hard links to
 * their files.
 */
int sb_overlay_view_merge(const struct sb_overlay_view *v, int to, const struct sb_host_call *call,
	struct sb_error *err);

#endif
