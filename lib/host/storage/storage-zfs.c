/* SPDX-License-Identifier: MIT */
/* The storage "zfs": a session is a dataset, its snapshots and forks are those of ZFS. */
#include "config.h"

#include <host/storage/claim.h>
#include <host/storage/storage-zfs-priv.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/random.h>
#include <base/str.h>
#include <base/strmap.h>
#include <host/storage/idcheck.h>
#include <host/storage/rootcheck.h>

/*
 * How long a destroyed snapshot may stay busy, and how long the end of an unmount is waited for:
 * zfs-fuse writes every file system of the machine to the disk meanwhile, which has no limit.
 */
#define SNAPSHOT_BUSY_MS 3000
#define UNMOUNT_MS 2000

static struct sb_storage_zfs *
self(struct sb_storage *st)
{
	return (struct sb_storage_zfs *)st;
}

char *
sb_storage_zfs_name(struct sb_storage_zfs *s, const char *id, const char *snap,
	struct sb_error *err)
{
	sb_autofree char *leaf = sb_storage_zfs_leaf(s, id);
	char *name = leaf ?
		sb_str_printf("%s/%s%s%s", s->sessions, leaf, snap ? "@" : "", snap ? snap : "") :
		NULL;
	size_t len = name ? strlen(name) : 0;
	int r = 0;

	if (!name)
		r = sb_fail(err, SB_E_NOMEM, "dataset name");
	else if (!*leaf)
		r = sb_fail(err, SB_E_NOTFOUND, "%s/%s does not exist", s->sessions, id);
	else if (len > SB_ZFS_NAME_MAX)
		r = sb_fail(err, SB_E_INVAL,
			"zfs: invalid dataset or snapshot name: %zu bytes, at most %d in all", len,
			SB_ZFS_NAME_MAX);
	if (r < 0) {
		free(name);
		return NULL;
	}
	return name;
}

bool
sb_storage_zfs_mounted(const struct sb_storage_zfs *s, const char *leaf)
{
	sb_autofree char *path = sb_str_printf("%s/%s", s->root, leaf);
	struct stat root, st;

	return path && stat(s->root, &root) == 0 && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
		st.st_dev != root.st_dev;
}

int
sb_storage_zfs_mount(struct sb_storage *st, const char *id, char **out, struct sb_error *err)
{
	struct sb_storage_zfs *s = self(st);
	sb_autofree char *ds = sb_storage_zfs_name(s, id, NULL, err);
	const char *leaf = ds ? strrchr(ds, '/') + 1 : NULL;
	sb_autofree char *path = NULL;

	if (!ds)
		return SB_E_INVAL;
	path = sb_str_printf("%s/%s", s->root, leaf);
	if (!path)
		return sb_fail(err, SB_E_NOMEM, "mountpoint of %s", id);
	if (!sb_storage_zfs_mounted(s, leaf)) {
		const char *const args[] = { "mount", ds, NULL };
		int r = sb_zfs_run(&s->z, false, args, NULL, err);

		if (!sb_storage_zfs_mounted(s, leaf))
			return r < 0 ?
				r :
				sb_fail(err, SB_E_STORAGE,
					"%s is not mounted at %s: its mountpoint was changed", ds,
					path);
	}
	*out = sb_steal(&path);
	return 0;
}

/*
 * The full name of a base image; it must lie in the bases dataset, whatever form the caller used.
 */
static char *
resolve_base(const struct sb_storage_zfs *s, const char *base, struct sb_error *err)
{
	char q[SB_IDCHECK_QUOTE_MAX];
	size_t len = strlen(s->bases);
	size_t pool = strlen(s->pool);
	char *full;

	if (sb_idcheck_full_snapshot(base, err) < 0)
		return NULL;
	if (strncmp(base, s->bases, len) == 0 && (base[len] == '/' || base[len] == '@'))
		full = strdup(base);
	else if (strncmp(base, s->pool, pool) == 0 && (base[pool] == '/' || base[pool] == '@')) {
		(void)sb_fail(err, SB_E_DENIED, "base snapshot %s is not in %s",
			sb_idcheck_quote(base, q), s->bases);
		return NULL;
	} else
		full = sb_str_printf("%s/%s", s->bases, base);
	if (!full)
		(void)sb_fail(err, SB_E_NOMEM, "base snapshot");
	return full;
}

/*
 * zfs create|clone [-o refquota=N] [ORIGIN] DATASET. Not quota, which counts snapshots: a workspace
 * that is full by them could not even be emptied.
 */
static int
make(struct sb_storage_zfs *s, const char *origin, const char *ds, uint64_t quota,
	struct sb_error *err)
{
	char quota_arg[40];
	const char *args[7];
	size_t n = 0;

	args[n++] = origin ? "clone" : "create";
	if (quota) {
		(void)snprintf(quota_arg, sizeof quota_arg, "refquota=%llu",
			(unsigned long long)quota);
		args[n++] = "-o";
		args[n++] = quota_arg;
	}
	if (origin)
		args[n++] = origin;
	args[n++] = ds;
	args[n] = NULL;
	return sb_zfs_run(&s->z, false, args, NULL, err);
}

static int
make_from(struct sb_storage_zfs *s, const char *ds, const struct sb_storage_source *src,
	const struct sb_host_call *call, struct sb_error *err)
{
	sb_autofree char *origin = NULL;
	int r;

	if (src->fd >= 0) {
		char quota[40];
		const char *const args[] = { "set", quota, ds, NULL };

		r = sb_storage_zfs_receive(s, ds, src->fd, call, err);
		if (r < 0 || src->quota == 0)
			return r;
		(void)snprintf(quota, sizeof quota, "refquota=%llu",
			(unsigned long long)src->quota);
		return sb_zfs_run(&s->z, false, args, NULL, err);
	}
	if (src->base)
		origin = resolve_base(s, src->base, err);
	else if (src->from_id)
		origin = sb_storage_zfs_name(s, src->from_id, src->from_snap, err);
	if ((src->base || src->from_id) && !origin)
		return err ? err->code : SB_E_INVAL;
	r = make(s, origin, ds, src->quota, err);
	if (r == SB_E_NOTFOUND && src->base)
		r = sb_fail(err, SB_E_BASE_NOT_FOUND, "%s: %s", sb_code_text(SB_E_BASE_NOT_FOUND),
			origin);
	else if (r == SB_E_NOTFOUND && src->from_id)
		r = sb_fail(err, SB_E_SNAPSHOT_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SNAPSHOT_NOT_FOUND), origin);
	return r;
}

static int zfs_destroy(struct sb_storage *st, const char *id, struct sb_error *err);

static int
zfs_create(struct sb_storage *st, const char *id, const struct sb_storage_source *src,
	const struct sb_host_call *call, char **out, struct sb_error *err)
{
	struct sb_storage_zfs *s = self(st);
	const char *what = src->from_id ? "clone snapshot" :
		src->fd >= 0            ? "receive" :
					  "clone base snapshot";
	sb_autofree char *ds = NULL;
	int r = sb_storage_zfs_claim(s, id, err);

	if (r < 0)
		return r;
	ds = sb_storage_zfs_name(s, id, NULL, err);
	r = ds ? make_from(s, ds, src, call, err) : SB_E_INVAL;
	if (r == SB_E_BASE_NOT_FOUND || r == SB_E_SNAPSHOT_NOT_FOUND || r == SB_E_EXISTS ||
		r == SB_E_DENIED || r == SB_E_INVAL) {
		sb_storage_zfs_unclaim(s, id);
		return r;
	}
	if (r == 0)
		r = sb_storage_zfs_mount(st, id, out, err);
	if (r < 0) {
		(void)zfs_destroy(st, id, NULL);
		return sb_wrap(err, r, "%s", what);
	}
	return 0;
}

/*
 * Gone, or dead until forks or zfs-fuse let go of it. SB_E_STORAGE_BUSY while somebody has a file
 * of it open.
 */
static int
zfs_destroy(struct sb_storage *st, const char *id, struct sb_error *err)
{
	struct sb_storage_zfs *s = self(st);
	sb_autofree char *leaf = sb_storage_zfs_leaf(s, id);
	sb_autofree char *ds = NULL;
	sb_deadline d = sb_deadline_in(SB_STORAGE_ZFS_BUSY_MS);
	bool forks;
	int r;

	/* Only a dead one has that name: this session is gone. */
	if (leaf && !*leaf)
		return 0;
	/*
	 * Not asked for once more: a second destroy beside this one may set the session aside
	 * meanwhile.
	 */
	ds = leaf ? sb_str_printf("%s/%s", s->sessions, leaf) : NULL;
	if (!ds)
		return sb_fail(err, SB_E_NOMEM, "dataset name");
	do
		r = sb_storage_zfs_remove(s, ds, UNMOUNT_MS, err);
	while (r == SB_E_STORAGE_BUSY && sb_storage_zfs_mounted(s, leaf) && !sb_deadline_passed(d));
	forks = r == SB_E_SNAPSHOT_IN_USE;
	if (forks && sb_storage_zfs_mounted(s, leaf))
		r = sb_storage_zfs_unmount(s, ds, SB_STORAGE_ZFS_BUSY_MS, err);
	if ((forks || r == SB_E_STORAGE_BUSY) && !sb_storage_zfs_mounted(s, leaf))
		return sb_storage_zfs_bury(s, id, leaf, forks, err);
	if (r == 0 || r == SB_E_NOTFOUND)
		sb_storage_zfs_unclaim(s, id);
	return r == SB_E_NOTFOUND ? 0 : r;
}

static int
zfs_snapshot(struct sb_storage *st, const char *id, const char *snap, struct sb_error *err)
{
	struct sb_storage_zfs *s = self(st);
	sb_autofree char *name = sb_storage_zfs_name(s, id, snap, err);
	const char *const args[] = { "snapshot", name, NULL };
	int r;

	if (!name)
		return SB_E_INVAL;
	r = sb_zfs_run_patient(&s->z, args, NULL, SB_STORAGE_ZFS_BUSY_MS, err);
	if (r == SB_E_EXISTS)
		return sb_fail(err, SB_E_SNAPSHOT_EXISTS, "%s: %s",
			sb_code_text(SB_E_SNAPSHOT_EXISTS), snap);
	return r == SB_E_NOTFOUND ?
		sb_fail(err, SB_E_STORAGE, "dataset of session %s is missing", id) :
		r;
}

static int
snap_error(int r, const char *snap, struct sb_error *err)
{
	int code = r;

	if (r == SB_E_NOTFOUND)
		code = SB_E_SNAPSHOT_NOT_FOUND;
	else if (r == SB_E_STORAGE_BUSY)
		code = SB_E_SNAPSHOT_HELD;
	else if (r != SB_E_SNAPSHOT_IN_USE)
		return r;
	return sb_fail(err, code, "%s: %s", sb_code_text(code), snap);
}

static int
zfs_snapshot_delete(struct sb_storage *st, const char *id, const char *snap, struct sb_error *err)
{
	struct sb_storage_zfs *s = self(st);
	sb_autofree char *name = sb_storage_zfs_name(s, id, snap, err);
	const char *const args[] = { "destroy", name, NULL };

	if (!name)
		return SB_E_INVAL;
	return snap_error(sb_zfs_run_patient(&s->z, args, NULL, SNAPSHOT_BUSY_MS, err), snap, err);
}

static char *
zfs_snapshot_name(struct sb_storage *st, const char *id, const char *snap)
{
	return sb_storage_zfs_name(self(st), id, snap, NULL);
}

static int
zfs_rollback(struct sb_storage *st, const char *id, const char *snap, struct sb_error *err)
{
	struct sb_storage_zfs *s = self(st);
	sb_autofree char *name = sb_storage_zfs_name(s, id, snap, err);
	const char *const args[] = { "rollback", "-r", name, NULL };
	int r;

	if (!name)
		return SB_E_INVAL;
	r = sb_zfs_run_patient(&s->z, args, NULL, SB_STORAGE_ZFS_BUSY_MS, err);
	return r == SB_E_STORAGE_BUSY ? r : snap_error(r, snap, err);
}

static int
hold_cmd(struct sb_storage *st, const char *verb, const char *id, const char *snap, const char *tag,
	struct sb_error *err)
{
	struct sb_storage_zfs *s = self(st);
	struct sb_error why = { 0 };
	sb_autofree char *name = sb_storage_zfs_name(s, id, snap, &why);
	const char *const args[] = { verb, tag, name, NULL };
	int r;

	/*
	 * A session that is set aside has none: its destroy was cut off after that, and is being
	 * finished.
	 */
	if (!name && why.code == SB_E_NOTFOUND)
		return snap_error(SB_E_NOTFOUND, snap, err);
	if (!name)
		return sb_fail(err, why.code, "%s", why.msg);
	r = sb_zfs_run(&s->z, false, args, NULL, err);
	return r == SB_E_NOTFOUND ? snap_error(r, snap, err) : r;
}

static int
zfs_hold(struct sb_storage *st, const char *id, const char *snap, const char *tag,
	struct sb_error *err)
{
	return hold_cmd(st, "hold", id, snap, tag, err);
}

static int
zfs_release(struct sb_storage *st, const char *id, const char *snap, const char *tag,
	struct sb_error *err)
{
	return hold_cmd(st, "release", id, snap, tag, err);
}

static void
empty(struct sb_storage_zfs *s)
{
	free(s->z.zfs);
	free(s->z.zpool);
	free(s->pool);
	free(s->bases);
	free(s->sessions);
	free(s->root);
	if (s->claim_fd >= 0)
		(void)close(s->claim_fd);
	sb_strmap_free(&s->dead);
	sb_strmap_free(&s->moved);
}

static void
zfs_close(struct sb_storage *st)
{
	struct sb_storage_zfs *s = self(st);

	empty(s);
	(void)pthread_mutex_destroy(&s->mu);
	(void)pthread_mutex_destroy(&s->sweep_mu);
	free(s);
}

static const struct sb_storage_ops zfs_ops = {
	.version = 1,
	.name = "zfs",
	.snapshots = true,
	.quota = true,
	.close = zfs_close,
	.create = zfs_create,
	.destroy = zfs_destroy,
	.mount = sb_storage_zfs_mount,
	.list = sb_storage_zfs_list,
	.sweep = sb_storage_zfs_sweep,
	.used = sb_storage_zfs_used,
	.space = sb_storage_zfs_space,
	.bases = sb_storage_zfs_bases,
	.snapshot = zfs_snapshot,
	.snapshot_delete = zfs_snapshot_delete,
	.snapshot_name = zfs_snapshot_name,
	.rollback = zfs_rollback,
	.hold = zfs_hold,
	.release = zfs_release,
	.diff = sb_storage_zfs_diff,
	.look = sb_storage_zfs_look,
	.send = sb_storage_zfs_send,
	.receive = sb_storage_zfs_receive_next,
};

static int
check_opts(const struct sb_host_opts *o, struct sb_error *err)
{
	size_t len;
	int r;

	if (!o->pool || !o->bases_dataset || !o->sessions_dataset)
		return sb_fail(err, SB_E_INVAL,
			"storage zfs needs a pool, a bases dataset and a sessions dataset");
	if ((r = sb_idcheck_pool(o->pool, err)) < 0 ||
		(r = sb_idcheck_dataset(o->bases_dataset, err)) < 0 ||
		(r = sb_idcheck_dataset(o->sessions_dataset, err)) < 0)
		return r;
	len = strlen(o->pool);
	if (strncmp(o->bases_dataset, o->pool, len) != 0 || o->bases_dataset[len] != '/' ||
		strncmp(o->sessions_dataset, o->pool, len) != 0 || o->sessions_dataset[len] != '/')
		return sb_fail(err, SB_E_INVAL, "datasets %s and %s must lie in the pool %s",
			o->bases_dataset, o->sessions_dataset, o->pool);
	if (sb_str_starts(o->bases_dataset, o->sessions_dataset) ||
		sb_str_starts(o->sessions_dataset, o->bases_dataset)) {
		size_t a = strlen(o->bases_dataset), b = strlen(o->sessions_dataset);
		char next = a < b ? o->sessions_dataset[a] : o->bases_dataset[b];

		if (next == '\0' || next == '/')
			return sb_fail(err, SB_E_INVAL,
				"datasets %s and %s must not contain each other", o->bases_dataset,
				o->sessions_dataset);
	}
	return 0;
}

/*
 * The dataset exists afterwards. New ones take no set-uid programs and no devices: what is inside
 * is not trusted.
 */
static int
ensure_dataset(struct sb_storage_zfs *s, const char *ds, struct sb_error *err)
{
	const char *const get[] = { "get", "-H", "-o", "value", "type", ds, NULL };
	const char *const create[] = { "create", "-p", "-o", "setuid=off", "-o", "devices=off", ds,
		NULL };
	int r = sb_zfs_run(&s->z, false, get, NULL, err);

	if (r != SB_E_NOTFOUND)
		return r;
	r = sb_zfs_run(&s->z, false, create, NULL, err);
	return r == SB_E_EXISTS ? 0 : r;
}

static int
find_root(struct sb_storage_zfs *s, struct sb_error *err)
{
	const char *const get[] = { "get", "-H", "-o", "value", "mountpoint", s->sessions, NULL };
	sb_auto(sb_buf) struct sb_buf out;
	int r = sb_zfs_run(&s->z, false, get, &out, err);

	if (r < 0)
		return r;
	out.data[strcspn((char *)out.data, "\n")] = '\0';
	if (out.data[0] != '/')
		return sb_fail(err, SB_E_INVAL,
			"dataset %s has mountpoint %s: give it a directory (zfs set "
			"mountpoint=/...)",
			s->sessions, (char *)out.data);
	s->root = strdup((char *)out.data);
	if (!s->root)
		return sb_fail(err, SB_E_NOMEM, "storage zfs");
	return access(s->root, F_OK) == 0 ? sb_rootcheck(s->root, &s->z.log, err) : 0;
}

static int
fill(struct sb_storage_zfs *s, const struct sb_host_opts *o, int lock_fd, struct sb_error *err)
{
	uint8_t rnd[8];
	int r = sb_random(rnd, sizeof rnd, err);

	if (r < 0)
		return r;
	(void)sb_str_hex(rnd, sizeof rnd, s->instance);
	s->st.ops = &zfs_ops;
	s->z.zfs = o->sudo ? strdup(o->zfs_path ? o->zfs_path : "zfs") :
			     sb_zfs_find(o->zfs_path ? o->zfs_path : "zfs");
	s->z.zpool = o->sudo ? strdup(o->zpool_path ? o->zpool_path : "zpool") :
			       sb_zfs_find(o->zpool_path ? o->zpool_path : "zpool");
	s->z.sudo = o->sudo;
	s->z.lock_fd = lock_fd;
	s->z.timeout_ms = o->storage_timeout_ms;
	s->z.log = o->log;
	s->z.counters = &s->st.counters;
	s->transfer_ms = o->transfer_timeout_ms;
	s->pool = strdup(o->pool);
	s->bases = strdup(o->bases_dataset);
	s->sessions = strdup(o->sessions_dataset);
	s->z.nudge = s->sessions;
	atomic_init(&s->graves, true);
	if (!s->z.zfs || !s->z.zpool || !s->pool || !s->bases || !s->sessions)
		return sb_fail(err, SB_E_NOMEM, "storage zfs");
	return 0;
}

int
sb_storage_zfs_check(const struct sb_host_opts *o, struct sb_error *err)
{
	struct sb_storage_zfs s = { .claim_fd = -1 };
	sb_autofree char *name = NULL;
	const char *args[] = { "get", "-H", "-o", "value", "type", NULL, NULL };
	int r = check_opts(o, err);

	if (r == 0)
		r = fill(&s, o, -1, err);
	if (r == 0)
		r = sb_zfs_probe(&s.z, err);
	if (r == 0 && o->default_base) {
		name = resolve_base(&s, o->default_base, err);
		args[5] = name;
		r = !name ? SB_E_INVAL : sb_zfs_run(&s.z, false, args, NULL, err);
		if (r == SB_E_NOTFOUND)
			r = sb_fail(err, SB_E_BASE_NOT_FOUND, "default base %s: %s",
				o->default_base, sb_code_text(SB_E_BASE_NOT_FOUND));
	}
	empty(&s);
	return r;
}

struct sb_storage *
sb_storage_zfs_open(const struct sb_host_opts *o, int lock_fd, struct sb_error *err)
{
	struct sb_storage_zfs *s;
	int r = check_opts(o, err);

	if (r < 0)
		return NULL;
	s = calloc(1, sizeof *s);
	if (!s) {
		(void)sb_fail(err, SB_E_NOMEM, "storage zfs");
		return NULL;
	}
	(void)pthread_mutex_init(&s->mu, NULL);
	(void)pthread_mutex_init(&s->sweep_mu, NULL);
	s->claim_fd = -1;
	r = fill(s, o, lock_fd, err);
	if (r == 0)
		r = sb_zfs_probe(&s->z, err);
	if (r == 0)
		r = ensure_dataset(s, s->bases, err);
	if (r == 0)
		r = ensure_dataset(s, s->sessions, err);
	if (r == 0)
		r = find_root(s, err);
	if (r == 0)
		r = s->claim_fd = sb_claim_lock(s->root, err);
	if (r >= 0)
		r = sb_storage_zfs_load_marks(s, err);
	if (r < 0) {
		zfs_close(&s->st);
		return NULL;
	}
	return &s->st;
}
