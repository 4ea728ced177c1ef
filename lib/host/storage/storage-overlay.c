/* SPDX-License-Identifier: MIT */
/* Workspaces as layers of overlayfs: opening, making and destroying. Design: doc/STORAGE.md. */
#include "config.h"

#include <host/storage/storage-overlay-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/path.h>
#include <base/str.h>
#include <host/storage/overlay-layer.h>

#define PLACE "ws"

static struct sb_storage_overlay *
self(struct sb_storage *st)
{
	return (struct sb_storage_overlay *)st;
}

char *
sb_storage_overlay_path(const struct sb_storage_overlay *o, const char *id)
{
	return sb_str_printf("%s/%s/" PLACE, o->mnt, id);
}

struct sb_overlay_session *
sb_storage_overlay_find(struct sb_storage_overlay *o, const char *id, struct sb_error *err)
{
	struct sb_overlay_session *se = sb_overlay_state_session(&o->state, id);

	if (!se)
		(void)sb_fail(err, SB_E_NOTFOUND, "session %s is not in the storage", id);
	return se;
}

struct sb_storage_overlay_mine *
sb_storage_overlay_mine(struct sb_overlay_session *se, struct sb_error *err)
{
	if (!se->mine)
		se->mine = calloc(1, sizeof(struct sb_storage_overlay_mine));
	if (!se->mine)
		(void)sb_fail(err, SB_E_NOMEM, "session %s", se->id);
	return se->mine;
}

int
sb_storage_overlay_record(struct sb_storage_overlay *o, const struct sb_overlay_rec *rec,
	struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r;

	if (o->broken)
		return sb_fail(err, SB_E_STORAGE,
			"the storage is out of step with its log: restart the host");
	r = sb_overlay_log_append(o->log, rec, err);
	if (r < 0)
		return r;
	r = sb_overlay_state_apply(&o->state, rec, &why);
	if (r < 0) {
		o->broken = true;
		return sb_fail(err, r, "%s", why.msg);
	}
	if (rec->kind == SB_OVERLAY_DROP || rec->kind == SB_OVERLAY_ROLL ||
		rec->kind == SB_OVERLAY_DESTROY || rec->kind == SB_OVERLAY_NODE)
		o->merge_due = true;
	return 0;
}

int
sb_storage_overlay_commit(struct sb_storage_overlay *o, struct sb_error *err)
{
	return o->durability == SB_HOST_DURABLE_NONE ? 0 : sb_overlay_log_sync(o->log, err);
}

uint64_t
sb_storage_overlay_new_id(struct sb_storage_overlay *o)
{
	uint64_t id;

	(void)pthread_mutex_lock(&o->mu);
	id = o->state.tree.next_id++;
	(void)pthread_mutex_unlock(&o->mu);
	return id;
}

static int64_t
now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/*
 * What a fork stands on: its node pinned, the rest into `rec`, whose texts are borrowed but for the
 * image's name, which is `base`. With `mu` held.
 */
static int
find_source(struct sb_storage_overlay *o, const struct sb_storage_source *src,
	struct sb_overlay_rec *rec, struct sb_overlay_node **node, char **base,
	struct sb_error *err)
{
	struct sb_overlay_session *from;
	struct sb_overlay_snap *sn;

	from = sb_overlay_state_session(&o->state, src->from_id);
	sn = from ? sb_overlay_state_snap(from, src->from_snap) : NULL;
	if (!sn)
		return sb_fail(err, SB_E_SNAPSHOT_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SNAPSHOT_NOT_FOUND), src->from_snap);
	rec->base = *base = strdup(from->base);
	if (!*base)
		return sb_fail(err, SB_E_NOMEM, "session");
	rec->owner = from->owner;
	rec->base_ino = from->base_ino;
	rec->base_btime_ns = from->base_btime_ns;
	rec->origin_id = src->from_id;
	rec->origin_snap = src->from_snap;
	*node = sn->node;
	sb_overlay_node_pin(*node);
	return 0;
}

/* The image that a new session stands on, open. Without `mu`. */
static int
open_source(struct sb_storage_overlay *o, const struct sb_storage_source *src,
	struct sb_overlay_rec *rec, struct sb_error *err)
{
	const uint64_t ino = rec->base_ino;
	const int64_t btime = rec->base_btime_ns;
	int fd;

	if (!src->from_id) {
		rec->base = src->base;
		rec->owner = sb_storage_overlay_base_owner(o, src->base, src->owner);
	}
	fd = sb_storage_overlay_base(o, rec->base, (uid_t)rec->owner, &rec->base_ino,
		&rec->base_btime_ns, err);
	if (fd < 0 || !src->from_id || (rec->base_ino == ino && rec->base_btime_ns == btime))
		return fd;
	(void)close(fd);
	return sb_storage_overlay_base_replaced(rec->base, src->from_id, err);
}

static int
make_place(struct sb_storage_overlay *o, const char *id, struct sb_error *err)
{
	sb_autofree char *dir = sb_str_printf("%s/%s", o->mnt, id);
	sb_autofree char *path = sb_storage_overlay_path(o, id);

	if (!dir || !path)
		return sb_fail(err, SB_E_NOMEM, "session %s", id);
	if ((mkdir(dir, 0755) < 0 && errno != EEXIST) || (mkdir(path, 0755) < 0 && errno != EEXIST))
		return sb_fail_errno(err, "make %s", path);
	return 0;
}

static void
remove_place(struct sb_storage_overlay *o, const char *id)
{
	sb_autofree char *dir = sb_str_printf("%s/%s", o->mnt, id);
	sb_autofree char *path = sb_storage_overlay_path(o, id);

	if (dir && path) {
		(void)sb_overlay_mount_leave(path, true, NULL);
		(void)rmdir(path);
		(void)rmdir(dir);
	}
}

/* Records the session with its upper and mounts it. */
static int
found(struct sb_storage_overlay *o, const char *id, struct sb_overlay_rec *rec,
	struct sb_overlay_node *node, struct sb_storage_overlay_plan *p, struct sb_error *err)
{
	struct sb_overlay_session *se;
	int r = make_place(o, id, err);

	if (r < 0)
		return r;
	rec->kind = SB_OVERLAY_CREATE;
	rec->sid = id;
	rec->node = node ? node->id : 0;
	rec->upper = p->stack[0];
	rec->time_ns = now_ns();
	rec->n_stack = p->n;
	memcpy(rec->stack, p->stack, p->n * sizeof p->stack[0]);
	(void)pthread_mutex_lock(&o->mu);
	r = sb_storage_overlay_record(o, rec, err);
	se = r == 0 ? sb_overlay_state_session(&o->state, id) : NULL;
	/* From now on a list may meet it. */
	if (se && !sb_storage_overlay_mine(se, err))
		r = SB_E_NOMEM;
	(void)pthread_mutex_unlock(&o->mu);
	if (r == 0)
		r = sb_storage_overlay_enter(o, se, p, err);
	return r < 0 ? r : sb_storage_overlay_commit(o, err);
}

static int overlay_destroy(struct sb_storage *st, const char *id, struct sb_error *err);

/* On `node`, which is pinned; the base goes over to the mount. What failed leaves nothing. */
static int
create_at(struct sb_storage_overlay *o, const char *id, struct sb_overlay_node *node, int base,
	struct sb_overlay_rec *rec, struct sb_error *err)
{
	sb_auto(sb_storage_overlay_plan) struct sb_storage_overlay_plan p = { .base = -1 };
	int r = sb_storage_overlay_plan(o, node, base, -1, &p, err);

	if (r == 0)
		r = found(o, id, rec, node, &p, err);
	if (r < 0) {
		(void)overlay_destroy(&o->st, id, NULL);
		sb_storage_overlay_discard(o, p.stack[0]);
	}
	return r;
}

int
sb_storage_overlay_create_on(struct sb_storage_overlay *o, const char *id, uint64_t node,
	struct sb_overlay_rec *rec, struct sb_error *err)
{
	int base = sb_storage_overlay_base(o, NULL, 0, &rec->base_ino, &rec->base_btime_ns, err);
	struct sb_overlay_node *n;

	if (base < 0)
		return base;
	(void)pthread_mutex_lock(&o->mu);
	n = sb_overlay_node_find(&o->state.tree, node);
	(void)pthread_mutex_unlock(&o->mu);
	return create_at(o, id, n, base, rec, err);
}

static int
create_from(struct sb_storage_overlay *o, const char *id, const struct sb_storage_source *src,
	struct sb_overlay_rec *rec, struct sb_error *err)
{
	struct sb_overlay_node *node = NULL;
	sb_autofree char *name = NULL;
	int base = -1, r = 0;

	(void)pthread_mutex_lock(&o->mu);
	if (sb_overlay_state_session(&o->state, id))
		r = sb_fail(err, SB_E_EXISTS, "%s/%s exists already", o->mnt, id);
	if (r == 0 && src->from_id)
		r = find_source(o, src, rec, &node, &name, err);
	(void)pthread_mutex_unlock(&o->mu);
	if (r < 0)
		return r;
	base = open_source(o, src, rec, err);
	r = base < 0 ? base : create_at(o, id, node, base, rec, err);
	(void)pthread_mutex_lock(&o->mu);
	sb_overlay_node_unpin(&o->state.tree, node);
	(void)pthread_mutex_unlock(&o->mu);
	return r;
}

static int
overlay_create(struct sb_storage *st, const char *id, const struct sb_storage_source *src,
	const struct sb_host_call *call, char **out, struct sb_error *err)
{
	struct sb_storage_overlay *o = self(st);
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	char *path = sb_storage_overlay_path(o, id);
	int r;

	if (!rec || !path)
		r = sb_fail(err, SB_E_NOMEM, "session %s", id);
	else if (src->quota)
		r = sb_fail(err, SB_E_UNSUPPORTED,
			"quota: the file system of %s has no project quotas", o->root);
	else if (src->fd >= 0)
		r = sb_storage_overlay_receive(o, id, src, call, err);
	else
		r = create_from(o, id, src, rec, err);
	if (r < 0) {
		free(path);
		return r;
	}
	*out = path;
	return 0;
}

static int
overlay_destroy(struct sb_storage *st, const char *id, struct sb_error *err)
{
	struct sb_storage_overlay *o = self(st);
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	int r = 0;

	if (!rec)
		return sb_fail(err, SB_E_NOMEM, "session %s", id);
	rec->kind = SB_OVERLAY_DESTROY;
	rec->sid = id;
	remove_place(o, id);
	(void)pthread_mutex_lock(&o->mu);
	if (sb_overlay_state_session(&o->state, id))
		r = sb_storage_overlay_record(o, rec, err);
	(void)pthread_mutex_unlock(&o->mu);
	if (r == 0)
		r = sb_storage_overlay_commit(o, err);
	sb_storage_overlay_poke(o);
	return r;
}

static int
overlay_space(struct sb_storage *st, struct sb_storage_space *out, struct sb_error *err)
{
	struct statvfs v;
	uint64_t total;

	if (fstatvfs(self(st)->rootfd, &v) < 0)
		return sb_fail_errno(err, "space of %s", self(st)->root);
	out->size = (uint64_t)v.f_blocks * v.f_frsize;
	out->used = (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
	out->free = (uint64_t)v.f_bavail * v.f_frsize;
	total = out->used + out->free;
	out->capacity = total ? (double)out->used / (double)total : 0;
	out->fragmentation = -1;
	(void)snprintf(out->state, sizeof out->state, "%s",
		self(st)->broken ? "FAULTED" : "ONLINE");
	return 0;
}

static int
plain_snapshot(struct sb_storage *st, const char *id, const char *snap, struct sb_error *err)
{
	return sb_storage_overlay_snapshot(st, id, snap, NULL, NULL, err);
}

static int
plain_rollback(struct sb_storage *st, const char *id, const char *snap, struct sb_error *err)
{
	return sb_storage_overlay_rollback(st, id, snap, true, NULL, err);
}

static char *
overlay_snapshot_name(struct sb_storage *st, const char *id, const char *snap)
{
	return sb_str_printf("%s/%s@%s", self(st)->mnt, id, snap);
}

static void
close_fd(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

static void
forget_mine(void *arg)
{
	struct sb_storage_overlay_mine *mine = arg;

	sb_overlay_capture_free(mine->capture);
	free(mine);
}

/* Uppers on the disk, and a word about it at the end of the log. */
static void
end_clean(struct sb_storage_overlay *o)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	int64_t now = now_ns();

	if (!rec || o->broken || o->durability == SB_HOST_DURABLE_NONE || syncfs(o->rootfd) < 0)
		return;
	rec->kind = SB_OVERLAY_CLEAN;
	rec->time_ns = now;
	if (sb_storage_overlay_record(o, rec, NULL) == 0)
		(void)sb_overlay_log_sync(o->log, NULL);
}

static void
overlay_free(struct sb_storage_overlay *o)
{
	sb_overlay_log_close(o->log);
	sb_overlay_state_free(&o->state);
	close_fd(o->rootfd);
	close_fd(o->layersfd);
	close_fd(o->trashfd);
	close_fd(o->emptyfd);
	close_fd(o->basesfd);
	close_fd(o->lockfd);
	free(o->settle.v);
	free(o->root);
	free(o->mnt);
	free(o->bases);
	free(o->base_place);
	while (o->images) {
		struct sb_storage_overlay_image *im = o->images;

		o->images = im->next;
		free(im);
	}
	(void)pthread_cond_destroy(&o->cv);
	(void)pthread_mutex_destroy(&o->mu);
	(void)pthread_mutex_destroy(&o->work_mu);
	free(o);
}

/* Sessions stay mounted: what runs in them goes on. */
static void
overlay_close(struct sb_storage *st)
{
	struct sb_storage_overlay *o = self(st);

	sb_storage_overlay_work_stop(o);
	(void)pthread_mutex_lock(&o->mu);
	end_clean(o);
	(void)pthread_mutex_unlock(&o->mu);
	overlay_free(o);
}

static const struct sb_storage_ops overlay_ops = {
	.version = 1,
	.name = "overlay",
	.snapshots = true,
	.close = overlay_close,
	.create = overlay_create,
	.destroy = overlay_destroy,
	.mount = sb_storage_overlay_mount,
	.list = sb_storage_overlay_list,
	.sweep = sb_storage_overlay_sweep,
	.used = sb_storage_overlay_used,
	.space = overlay_space,
	.bases = sb_storage_overlay_bases,
	.snapshot = plain_snapshot,
	.snapshot_delete = sb_storage_overlay_delete,
	.snapshot_name = overlay_snapshot_name,
	.rollback = plain_rollback,
	.hold = sb_storage_overlay_hold,
	.release = sb_storage_overlay_release,
	.diff = sb_storage_overlay_diff,
	.look = sb_storage_overlay_look,
	.send = sb_storage_overlay_send,
	.snapshot_live = sb_storage_overlay_snapshot,
	.rollback_live = sb_storage_overlay_rollback,
	.unchanged = sb_storage_overlay_unchanged,
};

struct sb_storage *
sb_storage_overlay_open_as(const struct sb_host_opts *opts, const char *boot, struct sb_error *err)
{
	struct sb_storage_overlay *o = calloc(1, sizeof *o);
	struct sb_error why = { 0 };
	int r = o ? 0 : sb_fail(err, SB_E_NOMEM, "storage overlay");

	if (r < 0)
		return NULL;
	o->st.ops = &overlay_ops;
	o->rootfd = o->layersfd = o->trashfd = o->emptyfd = o->basesfd = o->lockfd = -1;
	o->log_to = opts->log;
	o->durability = opts->durability;
	o->flat_at = SB_STORAGE_OVERLAY_FLAT_AT;
	o->merge_at = SB_STORAGE_OVERLAY_MERGE_AT;
	(void)pthread_mutex_init(&o->mu, NULL);
	(void)pthread_mutex_init(&o->work_mu, NULL);
	(void)pthread_cond_init(&o->cv, NULL);
	r = sb_overlay_state_init(&o->state, &why);
	o->state.forget = forget_mine;
	if (r == 0)
		r = sb_storage_overlay_boot(o, opts, boot, &why);
	if (r == 0)
		r = sb_storage_overlay_work_start(o, &why);
	if (r < 0) {
		overlay_free(o);
		if (err)
			*err = why;
		return NULL;
	}
	return &o->st;
}

struct sb_storage *
sb_storage_overlay_open(const struct sb_host_opts *opts, struct sb_error *err)
{
	return sb_storage_overlay_open_as(opts, NULL, err);
}
