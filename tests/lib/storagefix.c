/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/lib/storagefix.h"

#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/child.h>
#include <base/spawn.h>
#include <base/strlist.h>
#include <host/storage/storage-overlay-priv.h>

#ifndef TEST_STORAGE
#define TEST_STORAGE "overlay-ext4"
#endif
const char *storagefix_kind = TEST_STORAGE;

#define IMAGE_BYTES (600ll << 20)

static struct {
	struct tmpdir t;
	char image[300], at[300];
	char why[300]; /* "" when all is there */
	bool mounted;
} world;

int
storagefix_run(const char *const *argv)
{
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_error err = { 0 };

	o.search_path = true;
	return sb_child_run(argv, &o, NULL, 0, NULL, NULL, NULL, sb_deadline_in(60000), &err);
}

const char *
storagefix_place(void)
{
	return world.mounted ? world.at : NULL;
}

const char *
storagefix_image(void)
{
	return world.image;
}

static const char *
file_system(void)
{
	const char *dash = strchr(storagefix_kind, '-');

	return dash ? dash + 1 : storagefix_kind;
}

static void
make_image(void)
{
	char mkfs[40];
	const char *const make[] = { mkfs, "-q", world.image, NULL };
	const char *const attach[] = { "mount", "-o", "loop", world.image, world.at, NULL };
	int fd = open(world.image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, IMAGE_BYTES), 0);
	(void)close(fd);
	(void)snprintf(mkfs, sizeof mkfs, "mkfs.%s", file_system());
	if (storagefix_run(make) != 0)
		(void)snprintf(world.why, sizeof world.why, "%s is not installed or fails", mkfs);
	else if (storagefix_run(attach) != 0)
		(void)snprintf(world.why, sizeof world.why,
			"a loop image of %s cannot be mounted here", file_system());
	else
		world.mounted = true;
}

int
storagefix_group_setup(void **state)
{
	(void)state;
	tmpdir_make(&world.t);
	(void)snprintf(world.image, sizeof world.image, "%s/image", world.t.path);
	(void)snprintf(world.at, sizeof world.at, "%s/at", world.t.path);
	assert_int_equal(mkdir(world.at, 0755), 0);
	if (geteuid() != 0)
		(void)snprintf(world.why, sizeof world.why, "mounting needs root");
	else
		make_image();
	return 0;
}

int
storagefix_group_teardown(void **state)
{
	(void)state;
	if (world.mounted && umount2(world.at, 0) < 0) {
		print_message("# %s is busy\n", world.at);
		(void)umount2(world.at, MNT_DETACH);
		return -1;
	}
	tmpdir_remove(&world.t);
	return 0;
}

static void
make_base(struct storagefix *f)
{
	char path[500];

	(void)snprintf(path, sizeof path, "%s/img/dir", f->bases);
	assert_ok(sb_file_mkdirs(path, 0755, &f->err), &f->err);
	(void)snprintf(path, sizeof path, "%s/img/hello", f->bases);
	assert_ok(sb_file_replace(AT_FDCWD, path, "hello\n", 6, 0644, &f->err), &f->err);
	(void)snprintf(path, sizeof path, "%s/img/dir/deep", f->bases);
	assert_ok(sb_file_replace(AT_FDCWD, path, "deep\n", 5, 0600, &f->err), &f->err);
	(void)snprintf(path, sizeof path, "%s/img/link", f->bases);
	assert_int_equal(symlink("hello", path), 0);
}

void
storagefix_open(struct storagefix *f)
{
	f->st = strcmp(storagefix_kind, "btrfs") == 0 ?
		sb_storage_btrfs_open(&f->o, &f->err) :
		sb_storage_overlay_open_as(&f->o, f->boot, &f->err);
	if (!f->st)
		fail_msg("open %s: %s (%d)", storagefix_kind, f->err.msg, f->err.code);
}

void
storagefix_reopen(struct storagefix *f)
{
	f->st->ops->close(f->st);
	f->st = NULL;
	storagefix_open(f);
}

int
storagefix_setup(void **state)
{
	static atomic_uint n;
	struct storagefix *f;
	unsigned mine = atomic_fetch_add(&n, 1);

	*state = NULL;
	if (!world.mounted) {
		print_message("# skip: %s\n", world.why);
		return 0;
	}
	f = calloc(1, sizeof *f);
	assert_non_null(f);
	f->o = (struct sb_host_opts)SB_HOST_OPTS_INIT;
	(void)snprintf(f->sessions, sizeof f->sessions, "%s/s%u", world.at, mine);
	(void)snprintf(f->bases, sizeof f->bases, "%s/b%u", world.at, mine);
	f->o.sessions_root_dir = f->sessions;
	f->o.bases_dir = f->bases;
	make_base(f);
	storagefix_open(f);
	*state = f;
	return 0;
}

static int
collect(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	if (!e->snap)
		sb_strlist_add(arg, e->id);
	return sb_strlist_check(arg, err);
}

/* Every session goes; afterwards nothing of them may be left on the disk. */
int
storagefix_teardown(void **state)
{
	struct storagefix *f = *state;
	struct sb_strlist all = { 0 };

	if (!f)
		return 0;
	if (f->st) {
		assert_ok(f->st->ops->list(f->st, NULL, collect, &all, &f->err), &f->err);
		for (size_t i = 0; i < all.n; i++)
			assert_ok(f->st->ops->destroy(f->st, all.v[i], &f->err), &f->err);
		assert_ok(f->st->ops->sweep(f->st, &f->err), &f->err);
		f->st->ops->close(f->st);
	}
	sb_strlist_free(&all);
	free(f);
	return 0;
}

static void
create(struct storagefix *f, const char *id, const struct sb_storage_source *src)
{
	char *path = NULL;

	assert_ok(f->st->ops->create(f->st, id, src, NULL, &path, &f->err), &f->err);
	free(path);
}

void
storagefix_create(struct storagefix *f, const char *id)
{
	const struct sb_storage_source src = { .base = "img", .fd = -1 };

	create(f, id, &src);
}

void
storagefix_fork(struct storagefix *f, const char *id, const char *from, const char *snap)
{
	const struct sb_storage_source src = { .from_id = from, .from_snap = snap, .fd = -1 };

	create(f, id, &src);
}

void
storagefix_snap(struct storagefix *f, const char *id, const char *snap)
{
	assert_ok(f->st->ops->snapshot(f->st, id, snap, &f->err), &f->err);
}

void
storagefix_rollback(struct storagefix *f, const char *id, const char *snap)
{
	assert_ok(f->st->ops->rollback_live(f->st, id, snap, false, NULL, &f->err), &f->err);
}

const char *
storagefix_path(struct storagefix *f, const char *id, const char *name)
{
	static char room[4][1024];
	static unsigned turn;
	char *out = room[turn++ % 4], *at = NULL;

	assert_ok(f->st->ops->mount(f->st, id, &at, &f->err), &f->err);
	(void)snprintf(out, sizeof room[0], "%s/%s", at, name);
	free(at);
	return out;
}

/* In place, as editors do not: the same file gets other bytes. */
void
storagefix_write(struct storagefix *f, const char *id, const char *name, const char *text)
{
	const char *path = storagefix_path(f, id, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		fail_msg("open %s failed", path);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

bool
storagefix_holds(struct storagefix *f, const char *id, const char *name, const char *text)
{
	struct sb_buf b;
	bool same;
	int r = sb_file_read(AT_FDCWD, storagefix_path(f, id, name), 1 << 20, &b, &f->err);

	if (r < 0)
		return !text;
	same = text && b.len == strlen(text) && memcmp(b.data, text, b.len) == 0;
	sb_buf_free(&b);
	return same;
}

static int
add_snap(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	char *out = arg;

	(void)err;
	if (e->snap) {
		size_t len = strlen(out);

		(void)snprintf(out + len, 2048 - len, "%s%s", len ? " " : "", e->snap);
	}
	return 0;
}

const char *
storagefix_snaps(struct storagefix *f, const char *id)
{
	static char out[2048];

	out[0] = '\0';
	assert_ok(f->st->ops->list(f->st, id, add_snap, out, &f->err), &f->err);
	return out;
}
