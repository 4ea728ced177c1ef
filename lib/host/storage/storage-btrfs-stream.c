/* SPDX-License-Identifier: MIT */
/* Snapshots of the btrfs storage as streams of layers (overlay-stream.h), and sessions out of them.
 */
#include "config.h"

#include <host/storage/storage-btrfs-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <host/storage/btrfs-layer.h>
#include <host/storage/overlay-stream.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A subvolume for work in progress, open. */
static int
make_work(struct sb_storage_btrfs *b, char name[40], struct sb_error *err)
{
	int fd, r = sb_btrfs_create(b->rootfd, sb_storage_btrfs_work(b, name), err);

	if (r < 0)
		return r;
	fd = openat(b->rootfd, name, DIR_FLAGS);
	return fd < 0 ? sb_fail_errno(err, "open %s", name) : fd;
}

int
sb_storage_btrfs_send(struct sb_storage *st, const char *id, const char *snap, const char *from,
	int fd, const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_storage_btrfs *b = (struct sb_storage_btrfs *)st;
	sb_autoclose int now = sb_storage_btrfs_open_at(b, id, snap, err);
	sb_autoclose int old = -1;
	sb_autoclose int layer = -1;
	struct sb_overlay_part part = { 0 };
	struct sb_btrfs_info info;
	char work[40] = "";
	int r = now < 0 ? now : sb_btrfs_info(now, &info, err);

	if (r < 0)
		return r;
	part.time_ns = info.made_s * 1000000000;
	(void)snprintf(part.name, sizeof part.name, "%s", snap);
	if (!from)
		return sb_overlay_stream_write(fd, &part, now, false, call, err);
	(void)snprintf(part.from, sizeof part.from, "%s", from);
	old = r = sb_storage_btrfs_open_at(b, id, from, err);
	if (r >= 0)
		layer = r = make_work(b, work, err);
	if (r >= 0)
		r = sb_btrfs_layer_build(old, now, layer, call, err);
	if (r == 0)
		r = sb_overlay_stream_write(fd, &part, layer, true, call, err);
	if (work[0])
		(void)sb_btrfs_destroy(b->rootfd, work, NULL);
	return r;
}

/* A part that stands on another: read aside, then applied to the tree. */
static int
read_layer(struct sb_storage_btrfs *b, struct sb_overlay_reader *rd,
	const struct sb_overlay_part *part, const char *id, int tree,
	const struct sb_host_call *call, struct sb_error *err)
{
	sb_autoclose int old = sb_storage_btrfs_open_at(b, id, part->from, err);
	char work[40] = "";
	sb_autoclose int layer = old < 0 ? old : make_work(b, work, err);
	int r = layer;

	if (r >= 0)
		r = sb_overlay_stream_read(rd, part, layer, err);
	if (r == 0)
		r = sb_btrfs_layer_apply(layer, old, tree, call, err);
	if (work[0])
		(void)sb_btrfs_destroy(b->rootfd, work, NULL);
	return r;
}

/* The tree becomes what the part stands on, which is not the part before it. */
static int
rebase(struct sb_storage_btrfs *b, const char *id, const char *from, const char *work, int *tree,
	struct sb_error *err)
{
	sb_autoclose int old = from[0] ? sb_storage_btrfs_open_at(b, id, from, err) : -1;
	int r;

	if (from[0] && old < 0)
		return sb_fail(err, SB_E_INVAL,
			"a part of the stream stands on \"%s\", which did not come before it",
			from);
	(void)close(sb_steal_fd(tree));
	r = sb_btrfs_destroy(b->rootfd, work, err);
	if (r == 0)
		r = from[0] ? sb_btrfs_snapshot(old, b->rootfd, work, false, err) :
			      sb_btrfs_create(b->rootfd, work, err);
	if (r < 0)
		return r;
	*tree = openat(b->rootfd, work, DIR_FLAGS);
	return *tree < 0 ? sb_fail_errno(err, "open %s", work) : 0;
}

static int
read_parts(struct sb_storage_btrfs *b, struct sb_overlay_reader *rd, const char *id,
	const char *work, int *tree, const struct sb_host_call *call, struct sb_error *err)
{
	char last[SB_HOST_NAME_MAX + 1] = "";
	struct sb_overlay_part part;
	int r;

	while ((r = sb_overlay_stream_next(rd, &part, err)) == 1) {
		r = strcmp(part.from, last) != 0 ? rebase(b, id, part.from, work, tree, err) : 0;
		if (r == 0)
			r = part.from[0] ? read_layer(b, rd, &part, id, *tree, call, err) :
					   sb_overlay_stream_read(rd, &part, *tree, err);
		if (r == 0)
			r = sb_storage_btrfs_name(b, *tree, id, part.name, err);
		if (r < 0)
			return r == SB_E_SNAPSHOT_EXISTS ?
				sb_fail(err, SB_E_INVAL, "the stream has snapshot %s twice",
					part.name) :
				r;
		(void)snprintf(last, sizeof last, "%s", part.name);
	}
	return r == 0 && !last[0] ? sb_fail(err, SB_E_INVAL, "the stream is empty") : r;
}

int
sb_storage_btrfs_receive(struct sb_storage_btrfs *b, const char *id, int fd,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_overlay_reader *rd = sb_overlay_stream_open(fd, call, err);
	char work[40] = "";
	sb_autoclose int tree = rd ? make_work(b, work, err) : SB_E_NOMEM;
	int r = tree < 0 ? tree : read_parts(b, rd, id, work, &tree, call, err);

	if (r == 0 && renameat2(b->rootfd, work, b->rootfd, id, RENAME_NOREPLACE) < 0)
		r = sb_fail_errno(err, "put %s in place", id);
	if (r < 0 && work[0])
		(void)sb_btrfs_destroy(b->rootfd, work, NULL);
	sb_overlay_stream_close(rd);
	return r;
}
