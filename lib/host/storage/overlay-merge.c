/* SPDX-License-Identifier: MIT */
/* One layer out of several, for the compaction of the overlay storage. */
#include "config.h"

#include <host/storage/overlay-view.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/path.h>
#include <base/str.h>
#include <host/storage/overlay-layer.h>
#include <host/storage/treecopy.h>

#define DEPTH_MAX 2048

struct merge {
	const struct sb_overlay_view *v;
	const struct sb_host_call *call;
	unsigned depth;
};

/* Where a file has as many names as the file system allows. */
static int
copy_instead(int from, const char *leaf, int to, const char *name, struct sb_error *err)
{
	sb_autoclose int in = openat(from, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	sb_autoclose int out =
		openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;
	int r;

	if (in < 0 || out < 0 || fstat(in, &st) < 0)
		return sb_fail_errno(err, "copy %s", name);
	r = sb_treecopy_data(in, out, st.st_size, err);
	if (r == 0)
		r = sb_overlay_layer_copy_meta(in, out, &st, false, err);
	/* A link would be on the disk already. */
	return r == 0 && fsync(out) < 0 ? sb_fail_errno(err, "sync %s", name) : r;
}

static int
link_leaf(struct merge *m, const struct sb_overlay_ventry *e, int to, struct sb_error *err)
{
	const char *leaf;
	sb_autoclose int dir = sb_path_open_parent(m->v->fds[e->layer], e->path, &leaf, err);

	if (dir < 0)
		return dir;
	if (linkat(dir, leaf, to, e->name, 0) == 0)
		return 0;
	return errno == EMLINK ? copy_instead(dir, leaf, to, e->name, err) :
				 sb_fail_errno(err, "link %s", e->name);
}

/* The marks that make the merged directory show what its parts showed. */
static int
set_marks(const struct sb_overlay_vdir *up, const struct sb_overlay_ventry *e, int fd,
	struct sb_error *err)
{
	sb_autofree char *natural = sb_overlay_view_natural(up, e->name);
	sb_autofree char *redirect = NULL;

	if (!e->dir.low)
		return natural && fsetxattr(fd, SB_OVERLAY_OPAQUE, "y", 1, 0) < 0 ?
			sb_fail_errno(err, "mark %s", e->name) :
			0;
	if (natural && strcmp(natural, e->dir.low) == 0)
		return 0;
	redirect = sb_str_printf("/%s", e->dir.low);
	if (!redirect)
		return sb_fail(err, SB_E_NOMEM, "redirect");
	return fsetxattr(fd, SB_OVERLAY_REDIRECT, redirect, strlen(redirect), 0) < 0 ?
		sb_fail_errno(err, "mark %s", e->name) :
		0;
}

static int merge_dir(struct merge *m, const struct sb_overlay_vdir *d, int to,
	struct sb_error *err);

static int
merge_subdir(struct merge *m, const struct sb_overlay_vdir *up, const struct sb_overlay_ventry *e,
	int to, struct sb_error *err)
{
	sb_autoclose int fd = -1;
	int r;

	if (++m->depth > DEPTH_MAX)
		return sb_fail(err, SB_E_LIMIT, "directories deeper than %d", DEPTH_MAX);
	if (mkdirat(to, e->name, 0700) < 0)
		return sb_fail_errno(err, "make %s", e->name);
	fd = openat(to, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return sb_fail_errno(err, "open %s", e->name);
	r = set_marks(up, e, fd, err);
	if (r == 0)
		r = merge_dir(m, &e->dir, fd, err);
	m->depth--;
	return r;
}

static int
merge_entry(struct merge *m, const struct sb_overlay_vdir *d, const struct sb_overlay_ventry *e,
	int to, struct sb_error *err)
{
	switch (e->kind) {
	case SB_OVERLAY_V_DIR: return merge_subdir(m, d, e, to, err);
	case SB_OVERLAY_V_LEAF: return link_leaf(m, e, to, err);
	default:
		/* With nothing below there is nothing to hide. */
		return d->low && mknodat(to, e->name, S_IFCHR, makedev(0, 0)) < 0 ?
			sb_fail_errno(err, "whiteout of %s", e->name) :
			0;
	}
}

/* Everything of `d` into `to`, then the attributes of its topmost part. */
static int
merge_dir(struct merge *m, const struct sb_overlay_vdir *d, int to, struct sb_error *err)
{
	sb_autoclose int from = -1;
	struct sb_overlay_ventry *e;
	struct stat st;
	size_t n;
	int r = sb_overlay_view_list(m->v, d, &e, &n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n && r == 0; i++) {
		r = sb_check_alive(m->call ? m->call->cancel : NULL,
			m->call ? m->call->deadline : SB_NEVER, "compaction", err);
		if (r == 0)
			r = merge_entry(m, d, &e[i], to, err);
	}
	sb_overlay_view_list_free(e, n);
	if (r < 0)
		return r;
	from = r = sb_path_open(m->v->fds[d->v[0].layer], d->v[0].path, O_RDONLY | O_DIRECTORY, 0,
		err);
	if (r >= 0 && fstat(from, &st) < 0)
		r = sb_fail_errno(err, "stat a layer");
	return r < 0 ? r : sb_overlay_layer_copy_meta(from, to, &st, false, err);
}

int
sb_overlay_view_merge(const struct sb_overlay_view *v, int to, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct merge m = { .v = v, .call = call };
	struct sb_overlay_vdir root;
	int r = sb_overlay_view_root(v, &root, err);

	if (r < 0)
		return r;
	r = merge_dir(&m, &root, to, err);
	sb_overlay_view_root_free(&root);
	return r;
}
