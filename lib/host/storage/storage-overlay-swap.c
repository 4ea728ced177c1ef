/* SPDX-License-Identifier: MIT */
/* Uppers of the overlay storage, and how they come to be mounted. */
#include "config.h"

#include <host/storage/storage-overlay-priv.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/str.h>
#include <host/storage/overlay-layer.h>

void
sb_storage_overlay_plan_clear(struct sb_storage_overlay_plan *p)
{
	if (p->base >= 0)
		(void)close(p->base);
	p->base = -1;
}

/* The root of the topmost layer below the upper, open: what the new one must look like. */
static int
open_like(struct sb_storage_overlay *o, const struct sb_storage_overlay_plan *p,
	struct sb_error *err)
{
	int fd;

	if (p->n > 1)
		return sb_overlay_layer_open(o->layersfd, p->stack[1], err);
	fd = openat(p->base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? sb_fail_errno(err, "open the base") : fd;
}

int
sb_storage_overlay_plan(struct sb_storage_overlay *o, struct sb_overlay_node *node, int base,
	int like, struct sb_storage_overlay_plan *out, struct sb_error *err)
{
	sb_autoclose int below = -1;
	int r;

	*out = (struct sb_storage_overlay_plan){ .base = base };
	out->stack[0] = sb_storage_overlay_new_id(o);
	(void)pthread_mutex_lock(&o->mu);
	r = sb_overlay_node_stack(node, out->stack, 1, SB_OVERLAY_LAYERS_MAX, err);
	(void)pthread_mutex_unlock(&o->mu);
	if (r < 0)
		return r;
	out->n = (size_t)r;
	if (like < 0) {
		like = below = open_like(o, out, err);
		if (like < 0)
			return like;
	}
	return sb_overlay_layer_make(o->layersfd, out->stack[0], like, err);
}

static void
note_root(struct sb_storage_overlay *o, struct sb_overlay_session *se,
	struct sb_storage_overlay_mine *mine)
{
	sb_autoclose int fd = sb_overlay_layer_open(o->layersfd, se->upper, NULL);
	struct stat st;

	mine->root_ctime = (struct timespec){ 0 };
	if (fd >= 0 && fstat(fd, &st) == 0)
		mine->root_ctime = st.st_ctim;
}

int
sb_storage_overlay_enter(struct sb_storage_overlay *o, struct sb_overlay_session *se,
	const struct sb_storage_overlay_plan *p, struct sb_error *err)
{
	struct sb_storage_overlay_mine *mine = sb_storage_overlay_mine(se, err);
	const struct sb_overlay_mount m = { .layers = o->layersfd,
		.stack = p->stack,
		.n = p->n,
		.base = p->base,
		.base_place = se->owner ? o->base_place : NULL,
		.writable = true,
		.is_volatile = o->durability != SB_HOST_DURABLE_ALL };
	sb_autofree char *path = sb_storage_overlay_path(o, se->id);
	int r = mine && path ? 0 : sb_fail(err, SB_E_NOMEM, "session %s", se->id);

	if (r == 0)
		r = sb_overlay_mount_at(&m, path, err);
	if (r < 0)
		return sb_wrap(err, r, "session %s", se->id);
	sb_overlay_capture_free(mine->capture);
	mine->capture = NULL;
	mine->mounted = true;
	note_root(o, se, mine);
	return 0;
}

static bool
has_entries(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_NOATIME | O_CLOEXEC);
	sb_autoclosedir DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *e;

	if (!d && copy >= 0)
		(void)close(copy);
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return true;
	return !d;
}

bool
sb_storage_overlay_pristine(struct sb_storage_overlay *o, struct sb_overlay_session *se)
{
	const struct sb_storage_overlay_mine *mine = se->mine;
	sb_autoclose int fd = sb_overlay_layer_open(o->layersfd, se->upper, NULL);
	struct stat st;

	if (fd < 0 || !mine || fstat(fd, &st) < 0)
		return false;
	return mine->root_ctime.tv_sec != 0 && st.st_ctim.tv_sec == mine->root_ctime.tv_sec &&
		st.st_ctim.tv_nsec == mine->root_ctime.tv_nsec && !has_entries(fd);
}

/* Its directory is there; 1: something is mounted on it. */
static int
look_at_place(struct sb_storage_overlay *o, const char *id, struct sb_error *err)
{
	sb_autofree char *dir = sb_str_printf("%s/%s", o->mnt, id);
	sb_autofree char *path = sb_storage_overlay_path(o, id);
	struct stat a, b;

	if (!dir || !path)
		return sb_fail(err, SB_E_NOMEM, "session %s", id);
	if ((mkdir(dir, 0755) < 0 && errno != EEXIST) || (mkdir(path, 0755) < 0 && errno != EEXIST))
		return sb_fail_errno(err, "make %s", path);
	if (stat(dir, &a) < 0 || stat(path, &b) < 0)
		return sb_fail_errno(err, "stat %s", path);
	return a.st_dev != b.st_dev;
}

/* Mounts the upper that is there on its layers as they are now. */
static int
mount_again(struct sb_storage_overlay *o, struct sb_overlay_session *se, struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	sb_auto(sb_storage_overlay_plan) struct sb_storage_overlay_plan p = { .base = -1 };
	int r = rec ? 0 : sb_fail(err, SB_E_NOMEM, "session %s", se->id);

	if (r == 0)
		r = p.base = sb_storage_overlay_base_of(o, se, err);
	if (r >= 0)
		r = sb_overlay_layer_unmark(o->layersfd, se->upper, err);
	if (r < 0)
		return r;
	p.stack[0] = se->upper;
	(void)pthread_mutex_lock(&o->mu);
	r = sb_overlay_node_stack(se->node, p.stack, 1, SB_OVERLAY_LAYERS_MAX, err);
	if (r >= 0) {
		p.n = (size_t)r;
		*rec = (struct sb_overlay_rec){ .kind = SB_OVERLAY_MOUNT,
			.sid = se->id,
			.n_stack = p.n };
		memcpy(rec->stack, p.stack, p.n * sizeof p.stack[0]);
		r = sb_storage_overlay_record(o, rec, err);
	}
	(void)pthread_mutex_unlock(&o->mu);
	return r < 0 ? r : sb_storage_overlay_enter(o, se, &p, err);
}

int
sb_storage_overlay_mount(struct sb_storage *st, const char *id, char **out, struct sb_error *err)
{
	struct sb_storage_overlay *o = (struct sb_storage_overlay *)st;
	struct sb_storage_overlay_mine *mine = NULL;
	struct sb_overlay_session *se;
	int r = 0;

	(void)pthread_mutex_lock(&o->mu);
	se = sb_storage_overlay_find(o, id, err);
	if (se)
		mine = sb_storage_overlay_mine(se, err);
	(void)pthread_mutex_unlock(&o->mu);
	if (!se || !mine)
		return se ? SB_E_NOMEM : SB_E_NOTFOUND;
	r = look_at_place(o, id, err);
	if (r == 1 && !mine->mounted) {
		sb_autofree char *path = sb_storage_overlay_path(o, id);

		/* Of an upper that is not this session's any more. */
		r = path ? sb_overlay_mount_leave(path, true, err) :
			   sb_fail(err, SB_E_NOMEM, "session %s", id);
	} else if (r == 1) {
		r = 0;
	} else if (r == 0) {
		mine->mounted = false;
	}
	if (r == 0 && !mine->mounted)
		r = mount_again(o, se, err);
	if (r < 0)
		return r;
	*out = sb_storage_overlay_path(o, id);
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "session %s", id);
}

int
sb_storage_overlay_give_back(struct sb_storage_overlay *o, struct sb_overlay_session *se,
	const struct sb_storage_live *live, struct sb_error *err)
{
	sb_autofree char *path = sb_storage_overlay_path(o, se->id);

	if (!path)
		return sb_fail(err, SB_E_NOMEM, "session %s", se->id);
	return live && live->attach ? live->attach(live->arg, path, err) : 0;
}

int
sb_storage_overlay_take_away(struct sb_storage_overlay *o, struct sb_overlay_session *se,
	const struct sb_storage_live *live, bool force, struct sb_error *err)
{
	struct sb_storage_overlay_mine *mine = sb_storage_overlay_mine(se, err);
	sb_autofree char *path = sb_storage_overlay_path(o, se->id);
	int r = mine && path ? 0 : sb_fail(err, SB_E_NOMEM, "session %s", se->id);

	if (r == 0 && live && live->detach)
		r = live->detach(live->arg, force, err);
	if (r != 0)
		return r;
	r = sb_overlay_mount_leave(path, false, err);
	if (r == 1 && force)
		r = sb_overlay_mount_leave(path, true, err);
	if (r == 0) {
		mine->mounted = false;
		return 0;
	}
	if (sb_storage_overlay_give_back(o, se, live, r < 0 ? NULL : err) < 0 && r >= 0)
		r = SB_E_STORAGE;
	return r;
}

void
sb_storage_overlay_discard(struct sb_storage_overlay *o, uint64_t layer)
{
	(void)pthread_mutex_lock(&o->mu);
	if (layer && !sb_overlay_node_needs(&o->state.tree, layer))
		(void)sb_overlay_node_u64s_add(&o->state.tree.dead, layer, NULL);
	(void)pthread_mutex_unlock(&o->mu);
	sb_storage_overlay_poke(o);
}
