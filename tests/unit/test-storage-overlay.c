/* SPDX-License-Identifier: MIT */
/* What only the overlay storage has: layers, live copies, compaction, its log, power loss. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <base/buf.h>
#include <base/file.h>
#include <host/storage/storage-overlay-priv.h>

#include "tests/lib/storagefix.h"

#define FIXTURE(f) \
	struct storagefix *f = *state; \
	if (!f) \
	skip()

static struct sb_storage_overlay *
overlay(struct storagefix *f)
{
	return (struct sb_storage_overlay *)f->st;
}

/* Entries of a directory of the storage. */
static size_t
count(struct storagefix *f, const char *name)
{
	char path[500];
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	(void)snprintf(path, sizeof path, "%s/%s", f->sessions, name);
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	(void)closedir(d);
	return n;
}

static void
sweep(struct storagefix *f)
{
	assert_ok(f->st->ops->sweep(f->st, &f->err), &f->err);
}

static void
take(struct storagefix *f, const char *id, const char *snap, bool live, bool empty)
{
	struct sb_storage_taken t = { 0 };

	assert_ok(f->st->ops->snapshot_live(f->st, id, snap, NULL, &t, &f->err), &f->err);
	assert_int_equal(t.live, live);
	assert_int_equal(t.empty, empty);
}

static void
nothing_is_left_on_the_disk(void **state)
{
	FIXTURE(f);
	char name[20];

	storagefix_create(f, "one");
	for (int i = 0; i < 5; i++) {
		(void)snprintf(name, sizeof name, "s%d", i);
		storagefix_write(f, "one", name, "1");
		storagefix_snap(f, "one", name);
	}
	storagefix_fork(f, "two", "one", "s2");
	storagefix_rollback(f, "one", "s1");
	assert_ok(f->st->ops->destroy(f->st, "one", &f->err), &f->err);
	assert_ok(f->st->ops->destroy(f->st, "two", &f->err), &f->err);
	sweep(f);
	assert_int_equal(count(f, "layers"), 0);
	assert_int_equal(count(f, "trash"), 0);
	assert_int_equal(count(f, "mnt"), 0);
}

/* A snapshot of an idle workspace is an exchange: the layer has what changed and no more. */
static void
an_unchanged_snapshot_makes_no_layer(void **state)
{
	FIXTURE(f);
	size_t before;

	storagefix_create(f, "one");
	take(f, "one", "a", false, true);
	storagefix_write(f, "one", "x", "1");
	take(f, "one", "b", false, false);
	sweep(f);
	before = count(f, "layers");
	take(f, "one", "c", false, true);
	take(f, "one", "d", false, true);
	sweep(f);
	assert_int_equal(count(f, "layers"), before);
	storagefix_write(f, "one", "x", "2");
	storagefix_rollback(f, "one", "d");
	assert_true(storagefix_holds(f, "one", "x", "1"));
	storagefix_rollback(f, "one", "a");
	assert_true(storagefix_holds(f, "one", "x", NULL));
}

/* Somebody has a file open for writing: it is copied, and later writes do not reach the copy. */
static void
open_files_do_not_reach_a_snapshot(void **state)
{
	FIXTURE(f);
	sb_deadline d = sb_deadline_in(10000);
	struct sb_storage_taken t = { 0 };
	char name[20];
	int fd;

	storagefix_create(f, "one");
	storagefix_write(f, "one", "x", "1111");
	fd = open(storagefix_path(f, "one", "x"), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	take(f, "one", "a", true, false);
	assert_int_equal(pwrite(fd, "2", 1, 0), 1);
	take(f, "one", "b", true, false);
	assert_int_equal(pwrite(fd, "3", 1, 0), 1);
	assert_int_equal(unlink(storagefix_path(f, "one", "dir/deep")), 0);
	take(f, "one", "c", true, false);
	/* What changed a moment ago is copied again, until no later change can have its time. */
	for (int i = 0; !t.empty; i++) {
		assert_false(sb_deadline_passed(d));
		(void)snprintf(name, sizeof name, "c%d", i);
		assert_ok(f->st->ops->snapshot_live(f->st, "one", name, NULL, &t, &f->err),
			&f->err);
		assert_true(t.live);
	}
	(void)close(fd);
	take(f, "one", "d", false, false);
	storagefix_rollback(f, "one", "a");
	assert_true(storagefix_holds(f, "one", "x", "1111"));
	storagefix_rollback(f, "one", "b");
	assert_true(storagefix_holds(f, "one", "x", "2111"));
	assert_true(storagefix_holds(f, "one", "dir/deep", "deep\n"));
	storagefix_rollback(f, "one", "c");
	assert_true(storagefix_holds(f, "one", "x", "3111"));
	assert_true(storagefix_holds(f, "one", "dir/deep", NULL));
	storagefix_rollback(f, "one", "d");
	assert_true(storagefix_holds(f, "one", "x", "3111"));
}

/* The second write to a page that is dirty already changes no time. */
static void
mappings_are_noticed(void **state)
{
	FIXTURE(f);
	char name[20], text[4097], *map;
	int fd;

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	storagefix_create(f, "one");
	storagefix_write(f, "one", "x", text);
	fd = open(storagefix_path(f, "one", "x"), O_RDWR | O_CLOEXEC);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	for (int i = 0; i < 20; i++) {
		map[0] = (char)('A' + i);
		(void)snprintf(name, sizeof name, "s%d", i);
		take(f, "one", name, true, false);
	}
	assert_int_equal(munmap(map, 4096), 0);
	(void)close(fd);
	for (int i = 0; i < 20; i += 3) {
		(void)snprintf(name, sizeof name, "s%d", i);
		storagefix_rollback(f, "one", name);
		text[0] = (char)('A' + i);
		assert_true(storagefix_holds(f, "one", "x", text));
	}
}

/* Everything that a delta between two live copies must be able to say. */
static void
live_copies_follow_each_other(void **state)
{
	FIXTURE(f);
	char a[1024];
	int fd;

	storagefix_create(f, "one");
	fd = open(storagefix_path(f, "one", "held"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(mkdir(storagefix_path(f, "one", "new"), 0750), 0);
	storagefix_write(f, "one", "new/a", "1");
	storagefix_write(f, "one", "new/b", "1");
	assert_int_equal(
		link(storagefix_path(f, "one", "new/a"), storagefix_path(f, "one", "new/c")), 0);
	take(f, "one", "s1", true, false);
	assert_int_equal(unlink(storagefix_path(f, "one", "new/b")), 0);
	storagefix_write(f, "one", "new/d", "2");
	assert_int_equal(unlink(storagefix_path(f, "one", "hello")), 0);
	take(f, "one", "s2", true, false);
	/* A directory that was only in the upper moves; one of the base moves. */
	(void)snprintf(a, sizeof a, "%s", storagefix_path(f, "one", "new"));
	assert_int_equal(rename(a, storagefix_path(f, "one", "newer")), 0);
	assert_int_equal(mkdir(a, 0700), 0);
	storagefix_write(f, "one", "new/a", "fresh");
	take(f, "one", "s3", true, false);
	(void)snprintf(a, sizeof a, "%s", storagefix_path(f, "one", "dir"));
	assert_int_equal(rename(a, storagefix_path(f, "one", "newer/dir")), 0);
	take(f, "one", "s4", true, false);
	assert_int_equal(unlink(storagefix_path(f, "one", "newer/dir/deep")), 0);
	storagefix_write(f, "one", "newer/dir/other", "5");
	take(f, "one", "s5", true, false);
	(void)close(fd);
	storagefix_rollback(f, "one", "s1");
	assert_true(storagefix_holds(f, "one", "new/b", "1"));
	assert_true(storagefix_holds(f, "one", "hello", "hello\n"));
	storagefix_rollback(f, "one", "s2");
	assert_true(storagefix_holds(f, "one", "new/b", NULL));
	assert_true(storagefix_holds(f, "one", "new/c", "1"));
	assert_true(storagefix_holds(f, "one", "new/d", "2"));
	assert_true(storagefix_holds(f, "one", "hello", NULL));
	storagefix_rollback(f, "one", "s3");
	assert_true(storagefix_holds(f, "one", "new/a", "fresh"));
	assert_true(storagefix_holds(f, "one", "new/c", NULL));
	assert_true(storagefix_holds(f, "one", "newer/c", "1"));
	assert_true(storagefix_holds(f, "one", "newer/b", NULL));
	assert_true(storagefix_holds(f, "one", "dir/deep", "deep\n"));
	storagefix_rollback(f, "one", "s4");
	assert_true(storagefix_holds(f, "one", "dir/deep", NULL));
	assert_true(storagefix_holds(f, "one", "newer/dir/deep", "deep\n"));
	storagefix_rollback(f, "one", "s5");
	assert_true(storagefix_holds(f, "one", "newer/dir/deep", NULL));
	assert_true(storagefix_holds(f, "one", "newer/dir/other", "5"));
}

struct calls {
	char said[200];
	bool busy;
	char path[300];
};

static void
say(struct calls *c, const char *what)
{
	size_t len = strlen(c->said);

	(void)snprintf(c->said + len, sizeof c->said - len, "%s ", what);
}

static int
on_freeze(void *arg, bool freeze, struct sb_error *err)
{
	(void)err;
	say(arg, freeze ? "freeze" : "thaw");
	return 0;
}

static int
on_detach(void *arg, bool force, struct sb_error *err)
{
	struct calls *c = arg;

	(void)err;
	say(c, force ? "force" : "detach");
	return c->busy && !force;
}

static int
on_attach(void *arg, const char *path, struct sb_error *err)
{
	struct calls *c = arg;

	(void)err;
	say(c, "attach");
	(void)snprintf(c->path, sizeof c->path, "%s", path);
	return 0;
}

static void
the_runtime_is_asked_in_order(void **state)
{
	FIXTURE(f);
	struct calls c = { 0 };
	const struct sb_storage_live live = { &c, on_freeze, on_detach, on_attach };
	struct sb_storage_taken t;

	storagefix_create(f, "one");
	storagefix_write(f, "one", "x", "1");
	assert_ok(f->st->ops->snapshot_live(f->st, "one", "a", &live, &t, &f->err), &f->err);
	assert_string_equal(c.said, "freeze detach attach thaw ");
	assert_int_equal(strncmp(c.path, storagefix_path(f, "one", ""), strlen(c.path)), 0);
	c.said[0] = '\0';
	storagefix_write(f, "one", "x", "2");
	c.busy = true;
	assert_ok(f->st->ops->snapshot_live(f->st, "one", "b", &live, &t, &f->err), &f->err);
	assert_true(t.live);
	assert_string_equal(c.said, "freeze detach thaw ");
	c.said[0] = '\0';
	assert_ok(f->st->ops->rollback_live(f->st, "one", "a", false, &live, &f->err), &f->err);
	assert_string_equal(c.said, "force attach ");
	assert_true(storagefix_holds(f, "one", "x", "1"));
}

/* A long chain becomes short, and every state in it is what it was. */
static void
compaction_changes_nothing(void **state)
{
	FIXTURE(f);
	struct sb_storage_overlay *o = overlay(f);
	char name[40], text[20], from[1024];
	uint64_t stack[SB_OVERLAY_LAYERS_MAX];
	int depth;

	o->flat_at = 6;
	storagefix_create(f, "one");
	for (int i = 0; i < 30; i++) {
		(void)snprintf(name, sizeof name, "f%d", i % 7);
		(void)snprintf(text, sizeof text, "%d", i);
		storagefix_write(f, "one", name, text);
		if (i % 5 == 2) {
			(void)snprintf(name, sizeof name, "d%d", i);
			(void)snprintf(from, sizeof from, "%s",
				storagefix_path(f, "one", i == 2 ? "dir" : ""));
			if (i > 2) {
				char was[20];

				(void)snprintf(was, sizeof was, "d%d", i - 5);
				(void)snprintf(from, sizeof from, "%s",
					storagefix_path(f, "one", was));
			}
			assert_int_equal(rename(from, storagefix_path(f, "one", name)), 0);
		}
		if (i % 4 == 3)
			(void)unlink(storagefix_path(f, "one", "hello"));
		(void)snprintf(name, sizeof name, "s%d", i);
		storagefix_snap(f, "one", name);
		sweep(f);
	}
	(void)pthread_mutex_lock(&o->mu);
	depth = sb_overlay_node_stack(sb_overlay_state_session(&o->state, "one")->node, stack, 0,
		SB_OVERLAY_LAYERS_MAX, &f->err);
	(void)pthread_mutex_unlock(&o->mu);
	assert_true(depth > 0 && depth <= 7);
	storagefix_reopen(f);
	for (int i = 29; i >= 0; i--) {
		(void)snprintf(name, sizeof name, "s%d", i);
		storagefix_rollback(f, "one", name);
		for (int k = 0; k < 7; k++) {
			int last = i - ((i - k) % 7 + 7) % 7;

			(void)snprintf(name, sizeof name, "f%d", k);
			(void)snprintf(text, sizeof text, "%d", last);
			assert_true(storagefix_holds(f, "one", name, last < 0 ? NULL : text));
		}
		if (i < 2)
			(void)snprintf(name, sizeof name, "dir/deep");
		else
			(void)snprintf(name, sizeof name, "d%d/deep", i - (i - 2) % 5);
		assert_true(storagefix_holds(f, "one", name, "deep\n"));
		assert_true(storagefix_holds(f, "one", "hello", i < 3 ? "hello\n" : NULL));
	}
}

/* A directory that moved into a new one (which hides what is below it), and a part of it that
 * moved on from there: the redirect of the part leads through the opaque directory. */
static void
compaction_follows_redirects_through_opaque_directories(void **state)
{
	FIXTURE(f);
	char to[1024];

	overlay(f)->flat_at = 2;
	storagefix_create(f, "one");
	assert_int_equal(mkdir(storagefix_path(f, "one", "dir/sub"), 0755), 0);
	storagefix_write(f, "one", "dir/sub/file", "1");
	storagefix_snap(f, "one", "a");
	assert_int_equal(mkdir(storagefix_path(f, "one", "new"), 0755), 0);
	(void)snprintf(to, sizeof to, "%s", storagefix_path(f, "one", "new/dir"));
	assert_int_equal(rename(storagefix_path(f, "one", "dir"), to), 0);
	storagefix_snap(f, "one", "b");
	(void)snprintf(to, sizeof to, "%s", storagefix_path(f, "one", "moved"));
	assert_int_equal(rename(storagefix_path(f, "one", "new/dir/sub"), to), 0);
	storagefix_snap(f, "one", "c");
	assert_true(storagefix_holds(f, "one", "moved/file", "1"));
	sweep(f);
	storagefix_rollback(f, "one", "c");
	assert_true(storagefix_holds(f, "one", "moved/file", "1"));
	assert_true(storagefix_holds(f, "one", "new/dir/deep", "deep\n"));
}

/* When the names are gone, so are the layers. */
static void
nameless_layers_become_one(void **state)
{
	FIXTURE(f);
	char name[20];

	overlay(f)->merge_at = 2;
	storagefix_create(f, "one");
	for (int i = 0; i < 12; i++) {
		(void)snprintf(name, sizeof name, "s%d", i);
		storagefix_write(f, "one", name, name);
		storagefix_snap(f, "one", name);
	}
	for (int i = 0; i < 11; i++) {
		(void)snprintf(name, sizeof name, "s%d", i);
		assert_ok(f->st->ops->snapshot_delete(f->st, "one", name, &f->err), &f->err);
	}
	sweep(f);
	/* The mount in force has the old ones; the next one does not. */
	storagefix_rollback(f, "one", "s11");
	sweep(f);
	assert_true(count(f, "layers") <= 4);
	for (int i = 0; i < 12; i++) {
		(void)snprintf(name, sizeof name, "s%d", i);
		assert_true(storagefix_holds(f, "one", name, name));
	}
}

static void
a_flat_layer_frees_what_is_below(void **state)
{
	FIXTURE(f);
	char name[20];

	overlay(f)->flat_at = 4;
	overlay(f)->merge_at = 1000;
	storagefix_create(f, "one");
	for (int i = 0; i < 10; i++) {
		(void)snprintf(name, sizeof name, "s%d", i);
		storagefix_write(f, "one", name, name);
		storagefix_snap(f, "one", name);
		sweep(f);
	}
	for (int i = 0; i < 9; i++) {
		(void)snprintf(name, sizeof name, "s%d", i);
		assert_ok(f->st->ops->snapshot_delete(f->st, "one", name, &f->err), &f->err);
	}
	sweep(f);
	storagefix_rollback(f, "one", "s9");
	sweep(f);
	assert_true(count(f, "layers") <= 7);
	for (int i = 0; i < 10; i++) {
		(void)snprintf(name, sizeof name, "s%d", i);
		assert_true(storagefix_holds(f, "one", name, name));
	}
}

/* The deepest stack that can be mounted, and one more. */
static void
a_stack_never_grows_too_long(void **state)
{
	FIXTURE(f);
	struct sb_storage_overlay *o = overlay(f);
	char name[20];

	/* Nobody compacts in the background. */
	sb_storage_overlay_work_stop(o);
	storagefix_create(f, "one");
	for (int i = 0; i < SB_OVERLAY_LAYERS_MAX + 20; i++) {
		(void)snprintf(name, sizeof name, "s%d", i);
		storagefix_write(f, "one", name, name);
		storagefix_snap(f, "one", name);
	}
	assert_true(storagefix_holds(f, "one", "s0", "s0"));
	storagefix_rollback(f, "one", "s50");
	assert_true(storagefix_holds(f, "one", "s50", "s50"));
	assert_true(storagefix_holds(f, "one", "s51", NULL));
}

static int
find_snap(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	(void)err;
	if (e->snap && strncmp(e->snap, "unclean-", 8) == 0)
		*(bool *)arg = true;
	return 0;
}

/* The machine goes down: no clean end of the log, and another boot. */
static void
power_loss(struct storagefix *f, const char *boot)
{
	struct sb_storage_overlay *o = overlay(f);
	char path[800];
	struct dirent *e;
	DIR *d;

	sb_storage_overlay_work_stop(o);
	o->broken = true; /* so that the end is not noted */
	f->st->ops->close(f->st);
	(void)snprintf(path, sizeof path, "%s/mnt", f->sessions);
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.') {
			(void)snprintf(path, sizeof path, "%s/mnt/%s/ws", f->sessions, e->d_name);
			(void)umount2(path, 0);
		}
	(void)closedir(d);
	f->boot = boot;
	storagefix_open(f);
}

static void
after_a_power_loss_the_last_snapshot_counts(void **state)
{
	FIXTURE(f);
	bool aside = false;

	storagefix_create(f, "one");
	storagefix_create(f, "two");
	storagefix_write(f, "one", "x", "1");
	storagefix_snap(f, "one", "a");
	storagefix_write(f, "one", "x", "2");
	power_loss(f, "another boot");
	assert_true(storagefix_holds(f, "one", "x", "1"));
	assert_true(storagefix_holds(f, "two", "hello", "hello\n"));
	assert_ok(f->st->ops->list(f->st, "one", find_snap, &aside, &f->err), &f->err);
	assert_true(aside);
	assert_string_equal(storagefix_snaps(f, "two"), "");
	assert_string_equal(storagefix_snaps(f, "one"), "a unclean-1");
	/* What was written after it is not lost. */
	storagefix_fork(f, "three", "one", "unclean-1");
	assert_true(storagefix_holds(f, "three", "x", "2"));
	storagefix_write(f, "one", "x", "3");
	power_loss(f, "a third boot");
	assert_true(storagefix_holds(f, "one", "x", "1"));
	assert_string_equal(storagefix_snaps(f, "one"), "a unclean-1 unclean-2");
}

static void
a_clean_end_keeps_everything(void **state)
{
	FIXTURE(f);
	char at[500];

	storagefix_create(f, "one");
	storagefix_write(f, "one", "x", "1");
	f->st->ops->close(f->st);
	(void)snprintf(at, sizeof at, "%s/mnt/one/ws", f->sessions);
	assert_int_equal(umount2(at, 0), 0);
	f->boot = "another boot";
	storagefix_open(f);
	assert_true(storagefix_holds(f, "one", "x", "1"));
	assert_string_equal(storagefix_snaps(f, "one"), "");
}

/* A snapshot that was recorded, but whose files may not be on the disk: nobody was told of it. */
static void
an_unfinished_snapshot_does_not_count(void **state)
{
	FIXTURE(f);
	struct sb_storage_overlay *o = overlay(f);
	struct sb_overlay_session *se;

	storagefix_create(f, "one");
	storagefix_write(f, "one", "x", "1");
	storagefix_snap(f, "one", "a");
	storagefix_write(f, "one", "x", "2");
	o->durability = SB_HOST_DURABLE_NONE;
	storagefix_snap(f, "one", "b");
	o->durability = SB_HOST_DURABLE_SNAPSHOT;
	se = sb_overlay_state_session(&o->state, "one");
	assert_false(se->node->durable);
	power_loss(f, "another boot");
	assert_true(storagefix_holds(f, "one", "x", "1"));
	assert_string_equal(storagefix_snaps(f, "one"), "a unclean-1");
}

static void
a_replaced_base_is_refused(void **state)
{
	FIXTURE(f);
	char from[500], to[500], *at = NULL;

	storagefix_create(f, "one");
	f->st->ops->close(f->st);
	(void)snprintf(from, sizeof from, "%s/mnt/one/ws", f->sessions);
	assert_int_equal(umount2(from, 0), 0);
	(void)snprintf(from, sizeof from, "%s/img", f->bases);
	(void)snprintf(to, sizeof to, "%s/old", f->bases);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(mkdir(from, 0755), 0);
	storagefix_open(f);
	assert_fails(f->st->ops->mount(f->st, "one", &at, &f->err), SB_E_STORAGE, &f->err);
	assert_int_equal(rmdir(from), 0);
	assert_int_equal(rename(to, from), 0);
	assert_true(storagefix_holds(f, "one", "hello", "hello\n"));
}

/* A log with a torn end, with a damaged middle, and one that is written anew. */
static void
the_log_is_checked(void **state)
{
	FIXTURE(f);
	struct sb_storage_overlay *o = overlay(f);
	char path[500];
	struct stat st;
	uint8_t byte;
	int fd;

	storagefix_create(f, "one");
	storagefix_write(f, "one", "x", "1");
	storagefix_snap(f, "one", "a");
	(void)pthread_mutex_lock(&o->mu);
	assert_ok(sb_overlay_log_rewrite(o->log, sb_overlay_state_dump, &o->state, &f->err),
		&f->err);
	(void)pthread_mutex_unlock(&o->mu);
	storagefix_snap(f, "one", "b");
	assert_ok(f->st->ops->hold(f->st, "one", "b", "t", &f->err), &f->err);
	f->st->ops->close(f->st);
	(void)snprintf(path, sizeof path, "%s/log", f->sessions);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pwrite(fd, "SBL1torn", 8, st.st_size), 8);
	storagefix_open(f);
	assert_string_equal(storagefix_snaps(f, "one"), "a b");
	f->st->ops->close(f->st);
	f->st = NULL;
	assert_int_equal(pread(fd, &byte, 1, 40), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, 40), 1);
	assert_null(sb_storage_overlay_open_as(&f->o, NULL, &f->err));
	assert_int_equal(f->err.code, SB_E_CORRUPT);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, 40), 1);
	(void)close(fd);
	storagefix_open(f);
	assert_true(storagefix_holds(f, "one", "x", "1"));
	assert_ok(f->st->ops->release(f->st, "one", "b", "t", &f->err), &f->err);
}

static void
one_process_at_a_time(void **state)
{
	FIXTURE(f);

	assert_null(sb_storage_overlay_open_as(&f->o, NULL, &f->err));
	assert_int_equal(f->err.code, SB_E_LOCKED);
}

/* Attributes that only a box with rights could set, and marks that only the kernel may. */
static void
marks_do_not_show(void **state)
{
	FIXTURE(f);
	char list[1024];
	ssize_t n;
	int fd;

	storagefix_create(f, "one");
	fd = open(storagefix_path(f, "one", "held"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	storagefix_write(f, "one", "dir/x", "1");
	assert_int_equal(setxattr(storagefix_path(f, "one", "dir"), "user.color", "red", 3, 0), 0);
	take(f, "one", "a", true, false);
	(void)close(fd);
	storagefix_rollback(f, "one", "a");
	n = listxattr(storagefix_path(f, "one", "dir"), list, sizeof list);
	assert_int_equal(n, sizeof "user.color");
	assert_string_equal(list, "user.color");
}

static int
remember_parent(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	char *out = arg;
	size_t len = strlen(out);

	(void)err;
	(void)snprintf(out + len, 500 - len, "%s%s<%s", len ? " " : "", e->snap ? e->snap : "now",
		e->parent ? e->parent : "");
	return 0;
}

static void
the_timeline_has_parents(void **state)
{
	FIXTURE(f);
	char out[500] = "";

	storagefix_create(f, "one");
	for (int i = 0; i < 3; i++) {
		const char *const name[] = { "a", "b", "c" };

		storagefix_write(f, "one", "x", name[i]);
		storagefix_snap(f, "one", name[i]);
		if (i == 1)
			storagefix_rollback(f, "one", "a");
	}
	storagefix_reopen(f);
	assert_ok(f->st->ops->list(f->st, "one", remember_parent, out, &f->err), &f->err);
	assert_string_equal(out, "now<c a< b<a c<a");
	out[0] = '\0';
	assert_ok(f->st->ops->snapshot_delete(f->st, "one", "a", &f->err), &f->err);
	assert_ok(f->st->ops->list(f->st, "one", remember_parent, out, &f->err), &f->err);
	assert_string_equal(out, "now<c b< c<");
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, storagefix_setup, storagefix_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_is_left_on_the_disk),
		T(an_unchanged_snapshot_makes_no_layer),
		T(open_files_do_not_reach_a_snapshot),
		T(mappings_are_noticed),
		T(live_copies_follow_each_other),
		T(the_runtime_is_asked_in_order),
		T(compaction_changes_nothing),
		T(compaction_follows_redirects_through_opaque_directories),
		T(nameless_layers_become_one),
		T(a_flat_layer_frees_what_is_below),
		T(a_stack_never_grows_too_long),
		T(after_a_power_loss_the_last_snapshot_counts),
		T(a_clean_end_keeps_everything),
		T(an_unfinished_snapshot_does_not_count),
		T(a_replaced_base_is_refused),
		T(the_log_is_checked),
		T(one_process_at_a_time),
		T(marks_do_not_show),
		T(the_timeline_has_parents),
	};

	return cmocka_run_group_tests(tests, storagefix_group_setup, storagefix_group_teardown);
}
