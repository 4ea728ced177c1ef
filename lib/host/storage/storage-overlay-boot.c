/* SPDX-License-Identifier: MIT */
/* How the overlay storage starts: what the log says against what is on the disk and mounted. */
#include "config.h"

#include <host/storage/storage-overlay-priv.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <base/path.h>
#include <base/procid.h>
#include <base/str.h>
#include <base/strlist.h>
#include <host/storage/overlay-layer.h>
#include <host/storage/rootcheck.h>

#define LOCK_WAIT_MS 2000
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

static int
open_dir(struct sb_storage_overlay *o, const char *name, mode_t mode, int *out,
	struct sb_error *err)
{
	if (mkdirat(o->rootfd, name, mode) < 0 && errno != EEXIST)
		return sb_fail_errno(err, "make %s/%s", o->root, name);
	*out = openat(o->rootfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *out < 0 ? sb_fail_errno(err, "open %s/%s", o->root, name) : 0;
}

/* ext4 without a journal has no directory there. */
static bool
has_journal(dev_t dev)
{
	char path[64], target[256];
	sb_autofree char *jbd = NULL;
	const char *name;
	ssize_t n;

	(void)snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(dev), minor(dev));
	n = readlink(path, target, sizeof target - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	name = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
	jbd = sb_str_printf("/proc/fs/jbd2/%s-8", name);
	return jbd && access(jbd, F_OK) == 0;
}

/* Whether one fdatasync of a growing file commits all metadata that was changed before it. */
static bool
syncs_fast(int rootfd)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(rootfd, &fs) < 0 || fstat(rootfd, &st) < 0)
		return false;
	if (fs.f_type == XFS_SUPER_MAGIC)
		return true;
	return fs.f_type == EXT4_SUPER_MAGIC && has_journal(st.st_dev);
}

static int
open_places(struct sb_storage_overlay *o, const struct sb_host_opts *opts, struct sb_error *err)
{
	sb_autoclose int mnt = -1;
	int r;

	if (!opts->sessions_root_dir || opts->sessions_root_dir[0] != '/')
		return sb_fail(err, SB_E_INVAL,
			"storage overlay needs an absolute sessions root directory");
	r = sb_file_mkdirs(opts->sessions_root_dir, 0700, err);
	if (r == 0)
		r = sb_rootcheck(opts->sessions_root_dir, &opts->log, err);
	if (r < 0)
		return r;
	o->root = realpath(opts->sessions_root_dir, NULL);
	o->mnt = o->root ? sb_str_printf("%s/mnt", o->root) : NULL;
	o->bases = opts->bases_dir ? strdup(opts->bases_dir) : NULL;
	if (!o->root || !o->mnt || (opts->bases_dir && !o->bases))
		return sb_fail_errno(err, "directory %s", opts->sessions_root_dir);
	r = o->rootfd = sb_path_open_root(o->root, err);
	if (r < 0)
		return r;
	o->lockfd = openat(o->rootfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = o->lockfd < 0 ? sb_fail_errno(err, "open %s/lock", o->root) :
			    sb_file_lock(o->lockfd, LOCK_WAIT_MS, err);
	if (r == 0)
		r = open_dir(o, "layers", 0700, &o->layersfd, err);
	if (r == 0)
		r = open_dir(o, "trash", 0700, &o->trashfd, err);
	if (r == 0)
		r = open_dir(o, "empty", 0755, &o->emptyfd, err);
	if (r == 0)
		r = open_dir(o, "mnt", 0711, &mnt, err);
	o->base_place = sb_str_printf("%s/base", o->root);
	if (r == 0 && !o->base_place)
		r = sb_fail(err, SB_E_NOMEM, "storage overlay");
	if (r == 0 && o->bases)
		r = o->basesfd = sb_path_open_root(o->bases, err);
	o->fast_sync = syncs_fast(o->rootfd);
	return r < 0 ? r : 0;
}

int
sb_storage_overlay_probe(struct sb_storage_overlay *o, uint64_t layer, int base,
	struct sb_error *err)
{
	const uint64_t stack[1] = { layer };
	const struct sb_overlay_mount m = { .layers = o->layersfd,
		.stack = stack,
		.n = 1,
		.base = base,
		.base_place = base == o->emptyfd ? NULL : o->base_place,
		.writable = true,
		.is_volatile = o->durability != SB_HOST_DURABLE_ALL };
	sb_autofree char *place =
		sb_str_printf("%s/probe-%llx", o->root, (unsigned long long)layer);
	sb_autofree char *a = place ? sb_str_printf("%s/.probe-a", place) : NULL;
	sb_autofree char *b = place ? sb_str_printf("%s/.probe-b", place) : NULL;
	struct sb_error why = { 0 };
	int r = sb_overlay_layer_make(o->layersfd, stack[0], -1, err);

	if (r < 0)
		return r;
	if (!place || !a || !b || (mkdir(place, 0700) < 0 && errno != EEXIST))
		return sb_fail_errno(err, "make a directory in %s", o->root);
	(void)sb_overlay_mount_leave(place, true, NULL);
	r = sb_overlay_mount_at(&m, place, &why);
	/* A write through it: the file system must be able to be an upper. */
	if (r == 0) {
		if (mkdir(a, 0700) < 0 || rename(a, b) < 0)
			r = sb_fail_errno(&why, "write to an overlay");
		(void)sb_overlay_mount_leave(place, true, NULL);
	}
	(void)rmdir(place);
	(void)sb_overlay_layer_trash(o->layersfd, stack[0], o->trashfd, NULL);
	return r < 0 ? sb_fail(err, SB_E_UNSUPPORTED, "storage overlay does not work on %s: %.300s",
			       o->root, why.msg) :
		       0;
}

/* What a storage that does not work here has made: other storages take directories for sessions. */
static void
unmake_places(struct sb_storage_overlay *o)
{
	static const char *const made[] = { "mnt", "empty", "trash", "layers" };
	struct stat st;

	if (o->rootfd < 0 || fstatat(o->rootfd, "log", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	(void)sb_path_remove_tree(o->rootfd, "trash", NULL);
	for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
		(void)unlinkat(o->rootfd, made[i], AT_REMOVEDIR);
	(void)unlinkat(o->rootfd, "lock", 0);
}

static int
on_record(const struct sb_overlay_rec *rec, void *arg, struct sb_error *err)
{
	return sb_overlay_state_apply(arg, rec, err);
}

/* Layers that the log does not name. */
static int
trash_unknown(struct sb_storage_overlay *o, struct sb_error *err)
{
	int dup = openat(o->layersfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;
	int r = 0;

	if (!d) {
		if (dup >= 0)
			(void)close(dup);
		return sb_fail_errno(err, "read %s/layers", o->root);
	}
	while (r == 0 && (e = readdir(d))) {
		char *end = NULL;
		uint64_t id = strtoull(e->d_name, &end, 16);

		if (!isxdigit((unsigned char)e->d_name[0]) || *end ||
			sb_overlay_node_needs(&o->state.tree, id))
			continue;
		if (id >= o->state.tree.next_id && id != UINT64_MAX)
			o->state.tree.next_id = id + 1;
		r = sb_overlay_layer_trash(o->layersfd, id, o->trashfd, err);
	}
	o->state.tree.dead.n = 0;
	return r;
}

struct gone {
	struct sb_storage_overlay *o;
	struct sb_strlist paths; /* mounts that belong to no session as it is now */
};

/* A mount that is there from before: the session's, if it has the right upper. */
static int
on_mount(const char *rest, uint64_t upper, void *arg, struct sb_error *err)
{
	struct gone *g = arg;
	size_t len = strcspn(rest, "/");
	sb_autofree char *id = strndup(rest, len);
	struct sb_overlay_session *se = id ? sb_overlay_state_session(&g->o->state, id) : NULL;
	struct sb_storage_overlay_mine *mine = se ? sb_storage_overlay_mine(se, err) : NULL;

	if (mine && strcmp(rest + len, "/ws") == 0 && upper == se->upper && !mine->mounted) {
		mine->mounted = true;
		return 0;
	}
	sb_strlist_addf(&g->paths, "%s/%s", g->o->mnt, rest);
	return sb_strlist_check(&g->paths, err);
}

static int
adopt_mounts(struct sb_storage_overlay *o, struct sb_error *err)
{
	struct gone g = { .o = o };
	int r = sb_overlay_mount_each(o->mnt, on_mount, &g, err);

	for (size_t i = 0; i < g.paths.n && r == 0; i++)
		r = sb_overlay_mount_leave(g.paths.v[i], true, err);
	sb_strlist_free(&g.paths);
	return r;
}

/* Where something was mounted for a moment when the process was killed. */
static void
remove_moments(struct sb_storage_overlay *o)
{
	sb_autoclosedir DIR *d = opendir(o->root);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		sb_autofree char *path = sb_str_printf("%s/%s", o->root, e->d_name);

		if (!path ||
			(!sb_str_starts(e->d_name, "view-") &&
				!sb_str_starts(e->d_name, "probe-") &&
				strcmp(e->d_name, "base") != 0))
			continue;
		while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
			;
		(void)rmdir(path);
	}
}

/* Directories of mount points without a session. */
static void
remove_places(struct sb_storage_overlay *o)
{
	sb_autoclosedir DIR *d = opendir(o->mnt);
	struct dirent *e;

	remove_moments(o);
	while (d && (e = readdir(d))) {
		sb_autofree char *ws = sb_str_printf("%s/ws", e->d_name);

		if (e->d_name[0] == '.' || sb_overlay_state_session(&o->state, e->d_name) || !ws)
			continue;
		(void)unlinkat(dirfd(d), ws, AT_REMOVEDIR);
		(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
}

static bool
node_is_sound(const struct sb_overlay_node *n)
{
	for (; n; n = n->parent)
		if (!n->durable)
			return false;
	return true;
}

/* The newest snapshot on the way back from `head` that is on the disk whole; NULL: none. */
static struct sb_overlay_snap *
sound_snap(const struct sb_overlay_session *se)
{
	struct sb_overlay_snap *sn = sb_overlay_state_snap(se, se->head);

	for (size_t i = 0; sn && !node_is_sound(sn->node) && i <= se->n_snaps; i++)
		sn = sb_overlay_state_snap(se, sn->parent);
	return sn && node_is_sound(sn->node) ? sn : NULL;
}

/* The node that the session stood on when it was made, when no snapshot can be trusted. */
static struct sb_overlay_node *
origin_node(struct sb_storage_overlay *o, const struct sb_overlay_session *se)
{
	const struct sb_overlay_session *from =
		*se->origin_id ? sb_overlay_state_session(&o->state, se->origin_id) : NULL;
	const struct sb_overlay_snap *sn =
		from ? sb_overlay_state_snap(from, se->origin_snap) : NULL;
	struct sb_overlay_node *n = sn ? sn->node : se->node;

	while (n && !node_is_sound(n))
		n = n->parent;
	return n;
}

/* What was in the upper is a branch of its own from now on; its name goes to `name`. */
static int
set_aside(struct sb_storage_overlay *o, struct sb_overlay_session *se, uint64_t upper,
	struct sb_overlay_rec *rec, char *name, size_t size, struct sb_error *err)
{
	unsigned n = 1;

	do
		(void)snprintf(name, size, "unclean-%u", n++);
	while (sb_overlay_state_snap(se, name));
	*rec = (struct sb_overlay_rec){ .kind = SB_OVERLAY_SNAP,
		.sid = se->id,
		.name = name,
		.parent_name = se->head,
		.head = "",
		.node = se->upper,
		.parent = se->node ? se->node->id : 0,
		.layer = se->upper,
		.bytes = SB_OVERLAY_UNMEASURED,
		.durable = 1,
		.upper = upper };
	return sb_storage_overlay_record(o, rec, err);
}

/* The base image for reading. */
static int
open_base(struct sb_storage_overlay *o, struct sb_overlay_session *se, struct sb_error *err)
{
	sb_autoclose int base = sb_storage_overlay_base_of(o, se, err);
	int fd = base < 0 ? base : openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return base >= 0 && fd < 0 ? sb_fail_errno(err, "open the base") : fd;
}

/*
 * The machine went down under a session that did not wait for the disk: back to what is known to be
 * there.
 */
static int
go_back(struct sb_storage_overlay *o, struct sb_overlay_session *se, char *name, size_t size,
	struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	const struct sb_overlay_snap *sn = sound_snap(se);
	struct sb_overlay_node *node = sn ? sn->node : origin_node(o, se);
	uint64_t first = o->state.tree.next_id++, second = o->state.tree.next_id++;
	sb_autofree char *head = strdup(sn ? sn->name : "");
	sb_autoclose int like = -1;
	int r = rec && head ? 0 : sb_fail(err, SB_E_NOMEM, "session %s", se->id);

	if (r == 0)
		r = like = node ? sb_overlay_layer_open(o->layersfd,
					  node->flat ? node->flat : node->layer, err) :
				  open_base(o, se, err);
	if (r >= 0)
		r = sb_overlay_layer_make(o->layersfd, second, like, err);
	if (r == 0)
		r = sb_overlay_layer_make(o->layersfd, first, -1, err);
	sb_overlay_node_pin(node);
	if (r == 0)
		r = set_aside(o, se, first, rec, name, size, err);
	if (r == 0) {
		*rec = (struct sb_overlay_rec){ .kind = SB_OVERLAY_ROLL,
			.sid = se->id,
			.head = head,
			.node = node ? node->id : 0,
			.upper = second };
		r = sb_storage_overlay_record(o, rec, err);
	}
	sb_overlay_node_unpin(&o->state.tree, node);
	if (r == 0)
		sb_log(&o->log_to, SB_LOG_WARN, "storage",
			"session %s: the machine went down; the workspace is back at %s, what came "
			"after it is in snapshot %s, unchecked",
			se->id, *head ? head : "its beginning", name);
	return r;
}

/* Snapshots that were on their way when the machine went down: nobody was told of them. */
static int
drop_unfinished(struct sb_storage_overlay *o, struct sb_overlay_session *se, const char *aside,
	struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	int r = rec ? 0 : sb_fail(err, SB_E_NOMEM, "session %s", se->id);

	for (size_t i = se->n_snaps; i-- > 0 && r == 0;) {
		sb_autofree char *name = NULL;

		if (node_is_sound(se->snaps[i]->node) || strcmp(se->snaps[i]->name, aside) == 0)
			continue;
		name = strdup(se->snaps[i]->name);
		*rec = (struct sb_overlay_rec){ .kind = SB_OVERLAY_DROP,
			.sid = se->id,
			.name = name };
		r = name ? sb_storage_overlay_record(o, rec, err) :
			   sb_fail(err, SB_E_NOMEM, "session %s", se->id);
	}
	return r;
}

/* Whether anything in the directory changed after `ns`; true when it cannot be told. */
static bool
changed_since(int dir, int64_t ns)
{
	int dup = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;
	bool yes = !d;

	if (!d && dup >= 0)
		(void)close(dup);
	while (!yes && (e = readdir(d))) {
		struct stat st;
		sb_autoclose int sub = -1;

		if (strcmp(e->d_name, "..") == 0)
			continue;
		if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			(int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec > ns)
			return true;
		if (!S_ISDIR(st.st_mode) || strcmp(e->d_name, ".") == 0)
			continue;
		sub = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		yes = sub < 0 || changed_since(sub, ns);
	}
	return yes;
}

static bool
written_since(struct sb_storage_overlay *o, uint64_t upper, int64_t ns)
{
	sb_autoclose int fs = sb_overlay_layer_open(o->layersfd, upper, NULL);

	return fs < 0 || changed_since(fs, ns);
}

static bool
upper_is_empty(struct sb_storage_overlay *o, uint64_t upper)
{
	sb_autoclose int fs = sb_overlay_layer_open(o->layersfd, upper, NULL);
	int dup = fs >= 0 ? openat(fs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;

	if (!d && dup >= 0)
		(void)close(dup);
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return false;
	return d != NULL;
}

/* What is set aside stays as the disk has it, whatever that is. */
static int
vouch(struct sb_storage_overlay *o, const struct sb_overlay_session *se, const char *name,
	struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);
	const struct sb_overlay_snap *sn = sb_overlay_state_snap(se, name);
	int r = rec ? 0 : sb_fail(err, SB_E_NOMEM, "session %s", se->id);

	for (const struct sb_overlay_node *n = sn ? sn->node : NULL; n && r == 0; n = n->parent) {
		if (n->durable)
			continue;
		rec->kind = SB_OVERLAY_DURABLE;
		rec->node = n->id;
		rec->bytes = n->bytes;
		r = sb_storage_overlay_record(o, rec, err);
	}
	return r;
}

/* With a clean end, only those that something wrote to afterwards. */
static int
after_power_loss(struct sb_overlay_session *se, void *arg, struct sb_error *err)
{
	struct sb_storage_overlay *o = arg;
	char aside[32];
	int r;

	if (node_is_sound(se->node) &&
		(o->clean_ns ? !written_since(o, se->upper, o->clean_ns) :
			       upper_is_empty(o, se->upper)))
		return 0;
	r = go_back(o, se, aside, sizeof aside, err);
	if (r == 0)
		r = drop_unfinished(o, se, aside, err);
	return r < 0 ? r : vouch(o, se, aside, err);
}

/* Nothing is mounted in a new boot. */
static int
forget_mount(struct sb_overlay_session *se, void *arg, struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);

	if (!rec)
		return sb_fail(err, SB_E_NOMEM, "session %s", se->id);
	rec->kind = SB_OVERLAY_MOUNT;
	rec->sid = se->id;
	return se->n_stack ? sb_storage_overlay_record(arg, rec, err) : 0;
}

static int
new_boot(struct sb_storage_overlay *o, struct sb_error *err)
{
	bool lost = o->state.boot[0] != '\0';
	int r;

	o->clean_ns = o->state.clean ? o->state.clean_ns : 0;
	r = sb_overlay_state_each(&o->state, forget_mount, o, err);

	if (r == 0 && lost && o->durability == SB_HOST_DURABLE_SNAPSHOT)
		r = sb_overlay_state_each(&o->state, after_power_loss, o, err);
	return r;
}

static int
note_open(struct sb_storage_overlay *o, const char *boot, struct sb_error *err)
{
	sb_autofree struct sb_overlay_rec *rec = calloc(1, sizeof *rec);

	if (!rec)
		return sb_fail(err, SB_E_NOMEM, "storage overlay");
	rec->kind = SB_OVERLAY_OPEN;
	rec->boot = boot;
	return sb_storage_overlay_record(o, rec, err);
}

/* Layers that a crash kept from losing their `work`. */
static int
settle_all(struct sb_storage_overlay *o, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; i < o->state.tree.n_buckets; i++)
		for (const struct sb_overlay_node *n = o->state.tree.bucket[i]; n && r == 0;
			n = n->next)
			r = sb_overlay_node_u64s_add(&o->settle, n->layer, err);
	o->poke = true;
	return r;
}

int
sb_storage_overlay_boot(struct sb_storage_overlay *o, const struct sb_host_opts *opts,
	const char *boot, struct sb_error *err)
{
	char running[SB_PROCID_BOOT_SIZE];
	int r = open_places(o, opts, err);

	if (r == 0)
		r = sb_storage_overlay_probe(o, UINT64_MAX, o->emptyfd, err);
	if (r < 0) {
		if (r != SB_E_LOCKED)
			unmake_places(o);
		return r;
	}
	(void)sb_procid_boot(running);
	if (!boot)
		boot = running;
	o->log = sb_overlay_log_open(o->rootfd, on_record, &o->state, err);
	if (!o->log)
		return err->code;
	if (strcmp(o->state.boot, boot) != 0)
		r = new_boot(o, err);
	if (r == 0)
		r = note_open(o, boot, err);
	if (r == 0)
		r = trash_unknown(o, err);
	if (r == 0)
		r = adopt_mounts(o, err);
	if (r == 0)
		remove_places(o);
	if (r == 0)
		r = settle_all(o, err);
	return r < 0 ? r : sb_overlay_log_sync(o->log, err);
}
