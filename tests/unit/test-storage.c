/* SPDX-License-Identifier: MIT */
/* What every storage with snapshots must do; compiled once for each, on a loop image of its own. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <base/file.h>

#include "tests/lib/storagefix.h"

#define FIXTURE(f) \
	struct storagefix *f = *state; \
	if (!f) \
	skip()

static void
a_session_begins_as_its_base(void **state)
{
	FIXTURE(f);

	storagefix_create(f, "one");
	assert_true(storagefix_holds(f, "one", "hello", "hello\n"));
	assert_true(storagefix_holds(f, "one", "dir/deep", "deep\n"));
	storagefix_write(f, "one", "hello", "changed");
	storagefix_create(f, "two");
	assert_true(storagefix_holds(f, "two", "hello", "hello\n"));
}

static void
an_empty_session_is_empty(void **state)
{
	FIXTURE(f);
	const struct sb_storage_source src = { .fd = -1 };
	char *path = NULL;
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	assert_ok(f->st->ops->create(f->st, "none", &src, NULL, &path, &f->err), &f->err);
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d)))
		n++;
	(void)closedir(d);
	free(path);
	assert_int_equal(n, 2);
	storagefix_write(f, "none", "x", "1");
	storagefix_snap(f, "none", "a");
	storagefix_write(f, "none", "x", "2");
	storagefix_rollback(f, "none", "a");
	assert_true(storagefix_holds(f, "none", "x", "1"));
}

static void
sources_are_checked(void **state)
{
	FIXTURE(f);
	struct sb_storage_source src = { .base = "nothing", .fd = -1 };
	char *path = NULL;

	assert_fails(f->st->ops->create(f->st, "one", &src, NULL, &path, &f->err),
		SB_E_BASE_NOT_FOUND, &f->err);
	src.base = "../b0";
	assert_fails(f->st->ops->create(f->st, "one", &src, NULL, &path, &f->err), SB_E_INVAL,
		&f->err);
	storagefix_create(f, "one");
	src.base = "img";
	assert_fails(f->st->ops->create(f->st, "one", &src, NULL, &path, &f->err), SB_E_EXISTS,
		&f->err);
	src = (struct sb_storage_source){ .from_id = "one", .from_snap = "no", .fd = -1 };
	assert_fails(f->st->ops->create(f->st, "two", &src, NULL, &path, &f->err),
		SB_E_SNAPSHOT_NOT_FOUND, &f->err);
	assert_fails(f->st->ops->mount(f->st, "two", &path, &f->err), SB_E_NOTFOUND, &f->err);
}

static void
rollback_brings_everything_back(void **state)
{
	FIXTURE(f);
	char dir[1024], to[1024];

	storagefix_create(f, "one");
	storagefix_write(f, "one", "work", "1");
	storagefix_snap(f, "one", "good");
	(void)snprintf(dir, sizeof dir, "%s", storagefix_path(f, "one", "dir"));
	(void)snprintf(to, sizeof to, "%s", storagefix_path(f, "one", "moved"));
	assert_int_equal(rename(dir, to), 0);
	assert_int_equal(unlink(storagefix_path(f, "one", "work")), 0);
	assert_int_equal(unlink(storagefix_path(f, "one", "hello")), 0);
	storagefix_write(f, "one", "junk", "2");
	assert_true(storagefix_holds(f, "one", "moved/deep", "deep\n"));
	storagefix_rollback(f, "one", "good");
	assert_true(storagefix_holds(f, "one", "work", "1"));
	assert_true(storagefix_holds(f, "one", "hello", "hello\n"));
	assert_true(storagefix_holds(f, "one", "dir/deep", "deep\n"));
	assert_true(storagefix_holds(f, "one", "junk", NULL));
	assert_true(storagefix_holds(f, "one", "moved/deep", NULL));
}

static void
later_snapshots_stay_as_a_branch(void **state)
{
	FIXTURE(f);

	storagefix_create(f, "one");
	storagefix_write(f, "one", "x", "a");
	storagefix_snap(f, "one", "a");
	storagefix_write(f, "one", "x", "b");
	storagefix_snap(f, "one", "b");
	storagefix_rollback(f, "one", "a");
	assert_true(storagefix_holds(f, "one", "x", "a"));
	storagefix_write(f, "one", "x", "c");
	storagefix_snap(f, "one", "c");
	assert_string_equal(storagefix_snaps(f, "one"), "a b c");
	storagefix_rollback(f, "one", "b");
	assert_true(storagefix_holds(f, "one", "x", "b"));
	storagefix_rollback(f, "one", "c");
	assert_true(storagefix_holds(f, "one", "x", "c"));
	assert_ok(f->st->ops->rollback_live(f->st, "one", "a", true, NULL, &f->err), &f->err);
	assert_string_equal(storagefix_snaps(f, "one"), "a");
	assert_true(storagefix_holds(f, "one", "x", "a"));
}

static void
a_held_snapshot_is_not_lost(void **state)
{
	FIXTURE(f);

	storagefix_create(f, "one");
	storagefix_snap(f, "one", "a");
	storagefix_write(f, "one", "x", "1");
	storagefix_snap(f, "one", "b");
	assert_ok(f->st->ops->hold(f->st, "one", "b", "tag", &f->err), &f->err);
	assert_fails(f->st->ops->hold(f->st, "one", "b", "tag", &f->err), SB_E_EXISTS, &f->err);
	assert_fails(f->st->ops->hold(f->st, "one", "no", "tag", &f->err), SB_E_SNAPSHOT_NOT_FOUND,
		&f->err);
	assert_fails(f->st->ops->snapshot_delete(f->st, "one", "b", &f->err), SB_E_SNAPSHOT_HELD,
		&f->err);
	storagefix_reopen(f);
	assert_fails(f->st->ops->rollback_live(f->st, "one", "a", true, NULL, &f->err),
		SB_E_SNAPSHOT_HELD, &f->err);
	assert_true(storagefix_holds(f, "one", "x", "1"));
	assert_fails(f->st->ops->release(f->st, "one", "b", "other", &f->err), SB_E_HOLD_NOT_FOUND,
		&f->err);
	assert_ok(f->st->ops->release(f->st, "one", "b", "tag", &f->err), &f->err);
	assert_ok(f->st->ops->snapshot_delete(f->st, "one", "b", &f->err), &f->err);
	assert_fails(f->st->ops->snapshot_delete(f->st, "one", "b", &f->err),
		SB_E_SNAPSHOT_NOT_FOUND, &f->err);
	assert_string_equal(storagefix_snaps(f, "one"), "a");
}

static void
names_are_taken_once(void **state)
{
	FIXTURE(f);

	storagefix_create(f, "one");
	storagefix_snap(f, "one", "a");
	assert_fails(f->st->ops->snapshot(f->st, "one", "a", &f->err), SB_E_SNAPSHOT_EXISTS,
		&f->err);
	assert_fails(f->st->ops->rollback_live(f->st, "one", "b", false, NULL, &f->err),
		SB_E_SNAPSHOT_NOT_FOUND, &f->err);
	storagefix_create(f, "two");
	storagefix_snap(f, "two", "a");
}

/* Deleted in an order that no chain likes; what is left is whole. */
static void
snapshots_go_in_any_order(void **state)
{
	FIXTURE(f);
	static const int order[] = { 5, 0, 9, 3, 4, 8, 1, 6 };
	char name[20], text[20];

	storagefix_create(f, "one");
	for (int i = 0; i < 10; i++) {
		(void)snprintf(name, sizeof name, "s%d", i);
		(void)snprintf(text, sizeof text, "%d", i);
		storagefix_write(f, "one", "x", text);
		storagefix_write(f, "one", name, text);
		storagefix_snap(f, "one", name);
	}
	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
		(void)snprintf(name, sizeof name, "s%d", order[i]);
		assert_ok(f->st->ops->snapshot_delete(f->st, "one", name, &f->err), &f->err);
		assert_ok(f->st->ops->sweep(f->st, &f->err), &f->err);
	}
	assert_string_equal(storagefix_snaps(f, "one"), "s2 s7");
	assert_true(storagefix_holds(f, "one", "x", "9"));
	storagefix_rollback(f, "one", "s2");
	assert_true(storagefix_holds(f, "one", "x", "2"));
	assert_true(storagefix_holds(f, "one", "s1", "1"));
	assert_true(storagefix_holds(f, "one", "s3", NULL));
	storagefix_rollback(f, "one", "s7");
	assert_true(storagefix_holds(f, "one", "s5", "5"));
	assert_true(storagefix_holds(f, "one", "x", "7"));
}

static void
forks_live_on_without_their_origin(void **state)
{
	FIXTURE(f);

	storagefix_create(f, "one");
	storagefix_write(f, "one", "x", "1");
	storagefix_snap(f, "one", "a");
	storagefix_fork(f, "two", "one", "a");
	storagefix_write(f, "one", "x", "2");
	assert_true(storagefix_holds(f, "two", "x", "1"));
	storagefix_write(f, "two", "y", "2");
	storagefix_snap(f, "two", "b");
	assert_ok(f->st->ops->destroy(f->st, "one", &f->err), &f->err);
	assert_ok(f->st->ops->destroy(f->st, "one", &f->err), &f->err);
	assert_ok(f->st->ops->sweep(f->st, &f->err), &f->err);
	storagefix_reopen(f);
	assert_true(storagefix_holds(f, "two", "x", "1"));
	storagefix_write(f, "two", "x", "3");
	storagefix_rollback(f, "two", "b");
	assert_true(storagefix_holds(f, "two", "x", "1"));
	assert_true(storagefix_holds(f, "two", "y", "2"));
	/* The id is free again, for another session. */
	storagefix_create(f, "one");
	assert_true(storagefix_holds(f, "one", "x", NULL));
	assert_string_equal(storagefix_snaps(f, "one"), "");
}

static void
everything_is_there_after_a_restart(void **state)
{
	FIXTURE(f);

	storagefix_create(f, "one");
	storagefix_write(f, "one", "x", "1");
	storagefix_snap(f, "one", "a");
	storagefix_write(f, "one", "x", "2");
	storagefix_reopen(f);
	assert_true(storagefix_holds(f, "one", "x", "2"));
	assert_string_equal(storagefix_snaps(f, "one"), "a");
	storagefix_rollback(f, "one", "a");
	storagefix_reopen(f);
	assert_true(storagefix_holds(f, "one", "x", "1"));
}

static void
an_unchanged_workspace_is_known(void **state)
{
	FIXTURE(f);
	char name[SB_HOST_NAME_MAX + 1];

	storagefix_create(f, "one");
	assert_int_equal(f->st->ops->unchanged(f->st, "one", name, &f->err), 0);
	storagefix_snap(f, "one", "a");
	assert_int_equal(f->st->ops->unchanged(f->st, "one", name, &f->err), 1);
	assert_string_equal(name, "a");
	assert_true(storagefix_holds(f, "one", "hello", "hello\n"));
	assert_int_equal(f->st->ops->unchanged(f->st, "one", name, &f->err), 1);
	storagefix_write(f, "one", "dir/new", "1");
	assert_int_equal(f->st->ops->unchanged(f->st, "one", name, &f->err), 0);
	storagefix_snap(f, "one", "b");
	assert_int_equal(f->st->ops->unchanged(f->st, "one", name, &f->err), 1);
	assert_string_equal(name, "b");
	storagefix_rollback(f, "one", "a");
	assert_int_equal(f->st->ops->unchanged(f->st, "one", name, &f->err), 1);
	assert_string_equal(name, "a");
	assert_int_equal(chmod(storagefix_path(f, "one", "hello"), 0600), 0);
	assert_int_equal(f->st->ops->unchanged(f->st, "one", name, &f->err), 0);
}

static int
find_used(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	uint64_t *used = arg;

	(void)err;
	used[e->snap != NULL] = e->used;
	return 0;
}

static void
sizes_follow_what_is_written(void **state)
{
	FIXTURE(f);
	uint64_t used[2] = { 0 }, now = 0;
	char *big = calloc(1, (1 << 20) + 1);

	assert_non_null(big);
	memset(big, 'x', 1 << 20);
	storagefix_create(f, "one");
	storagefix_write(f, "one", "big", big);
	free(big);
	storagefix_snap(f, "one", "a");
	assert_ok(f->st->ops->list(f->st, "one", find_used, used, &f->err), &f->err);
	assert_true(used[0] >= 1 << 20 && used[0] < 3 << 20);
	assert_ok(f->st->ops->used(f->st, "one", &now, &f->err), &f->err);
	assert_true(now >= 1 << 20);
}

/* The changes as text, "+a -b Mc", in a static buffer. */
static const char *
changes(struct storagefix *f, const char *id, const char *from, const char *to)
{
	static char out[2000];
	sb_auto(sb_changes) struct sb_changes c = { .max = 1000 };
	size_t len = 0;

	assert_ok(f->st->ops->diff(f->st, id, from, to, NULL, &c, &f->err), &f->err);
	sb_changes_finish(&c);
	out[0] = '\0';
	for (size_t i = 0; i < c.n; i++)
		len += (size_t)snprintf(out + len, sizeof out - len, "%s%c%s%s%s", i ? " " : "",
			"+-MR"[c.v[i].kind], c.v[i].from ? c.v[i].from : "", c.v[i].from ? ">" : "",
			c.v[i].path);
	return out;
}

static void
diff_tells_what_changed(void **state)
{
	FIXTURE(f);

	storagefix_create(f, "one");
	storagefix_write(f, "one", "kept", "1");
	storagefix_snap(f, "one", "a");
	storagefix_write(f, "one", "hello", "other");
	storagefix_write(f, "one", "new", "1");
	assert_int_equal(unlink(storagefix_path(f, "one", "dir/deep")), 0);
	assert_string_equal(changes(f, "one", "a", NULL), "-dir/deep Mhello +new");
	storagefix_snap(f, "one", "b");
	assert_string_equal(changes(f, "one", "a", "b"), "-dir/deep Mhello +new");
	assert_string_equal(changes(f, "one", "b", "a"), "+dir/deep Mhello -new");
	assert_string_equal(changes(f, "one", "b", NULL), "");
	assert_string_equal(changes(f, "one", "a", "a"), "");
	storagefix_rollback(f, "one", "a");
	storagefix_write(f, "one", "branch", "1");
	storagefix_snap(f, "one", "c");
	assert_string_equal(changes(f, "one", "b", "c"), "+branch +dir/deep Mhello -new");
}

static void
diff_follows_renamed_directories(void **state)
{
	FIXTURE(f);
	char from[1024];
	const char *got;

	storagefix_create(f, "one");
	storagefix_snap(f, "one", "a");
	(void)snprintf(from, sizeof from, "%s", storagefix_path(f, "one", "dir"));
	assert_int_equal(rename(from, storagefix_path(f, "one", "other")), 0);
	storagefix_write(f, "one", "other/new", "1");
	storagefix_snap(f, "one", "b");
	got = changes(f, "one", "a", "b");
	if (strcmp(got, "Rdir>other +other/new") != 0)
		assert_string_equal(got, "Rdir>other Rdir/deep>other/deep +other/new");
}

/* Directories renamed again and again, each with a snapshot between, replaced and removed. */
static void
renames_survive_many_snapshots(void **state)
{
	FIXTURE(f);
	char from[1024], name[40];

	storagefix_create(f, "one");
	for (int i = 0; i < 12; i++) {
		char old[20], new[20];

		(void)snprintf(old, sizeof old, i ? "dir%d" : "dir", i);
		(void)snprintf(new, sizeof new, "dir%d", i + 1);
		(void)snprintf(from, sizeof from, "%s", storagefix_path(f, "one", old));
		assert_int_equal(rename(from, storagefix_path(f, "one", new)), 0);
		(void)snprintf(name, sizeof name, "dir%d/f%d", i + 1, i);
		storagefix_write(f, "one", name, "x");
		if (i % 3 == 0) {
			assert_int_equal(mkdir(from, 0755), 0);
			(void)snprintf(name, sizeof name, "%s/again", old);
			storagefix_write(f, "one", name, "y");
		}
		(void)snprintf(name, sizeof name, "s%d", i);
		storagefix_snap(f, "one", name);
	}
	for (int round = 0; round < 2; round++) {
		storagefix_rollback(f, "one", "s4");
		assert_true(storagefix_holds(f, "one", "dir5/deep", "deep\n"));
		assert_true(storagefix_holds(f, "one", "dir5/f0", "x"));
		assert_true(storagefix_holds(f, "one", "dir3/again", "y"));
		assert_true(storagefix_holds(f, "one", "dir3/deep", NULL));
		assert_true(storagefix_holds(f, "one", "dir4/f3", NULL));
		storagefix_rollback(f, "one", "s11");
		assert_true(storagefix_holds(f, "one", "dir12/deep", "deep\n"));
		assert_true(storagefix_holds(f, "one", "dir12/f11", "x"));
		assert_true(storagefix_holds(f, "one", "dir9/again", "y"));
		for (int i = 0; i < 11 && round == 0; i++) {
			(void)snprintf(name, sizeof name, "s%d", i);
			if (i != 4)
				assert_ok(f->st->ops->snapshot_delete(f->st, "one", name, &f->err),
					&f->err);
		}
		assert_ok(f->st->ops->sweep(f->st, &f->err), &f->err);
	}
}

static void
attributes_are_kept(void **state)
{
	FIXTURE(f);
	const struct timespec times[2] = { { .tv_sec = 1000000000, .tv_nsec = 5 },
		{ .tv_sec = 1234567890, .tv_nsec = 123456789 } };
	struct stat st;

	storagefix_create(f, "one");
	storagefix_write(f, "one", "x", "1");
	assert_int_equal(chmod(storagefix_path(f, "one", "x"), 0751), 0);
	assert_int_equal(chown(storagefix_path(f, "one", "x"), 12, 34), 0);
	assert_int_equal(utimensat(AT_FDCWD, storagefix_path(f, "one", "x"), times, 0), 0);
	assert_int_equal(chmod(storagefix_path(f, "one", ""), 0700), 0);
	assert_int_equal(utimensat(AT_FDCWD, storagefix_path(f, "one", ""), times, 0), 0);
	storagefix_snap(f, "one", "a");
	assert_int_equal(chmod(storagefix_path(f, "one", "x"), 0600), 0);
	assert_int_equal(chmod(storagefix_path(f, "one", ""), 0755), 0);
	storagefix_rollback(f, "one", "a");
	assert_int_equal(stat(storagefix_path(f, "one", "x"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0751);
	assert_int_equal(st.st_uid, 12);
	assert_int_equal(st.st_gid, 34);
	assert_int_equal(st.st_mtim.tv_sec, 1234567890);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	assert_int_equal(stat(storagefix_path(f, "one", ""), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_mtim.tv_sec, 1234567890);
}

static void
bases_are_listed(void **state)
{
	FIXTURE(f);
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };

	assert_ok(f->st->ops->bases(f->st, &l, &f->err), &f->err);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.v[0], "img");
}

static void
streams_carry_a_chain(void **state)
{
	FIXTURE(f);
	char from[1024], path[500];
	struct sb_storage_source src = { 0 };
	char *at = NULL;
	int fd;

	storagefix_create(f, "one");
	storagefix_write(f, "one", "x", "1");
	assert_int_equal(link(storagefix_path(f, "one", "x"), storagefix_path(f, "one", "y")), 0);
	storagefix_snap(f, "one", "a");
	(void)snprintf(from, sizeof from, "%s", storagefix_path(f, "one", "dir"));
	assert_int_equal(rename(from, storagefix_path(f, "one", "other")), 0);
	assert_int_equal(unlink(storagefix_path(f, "one", "hello")), 0);
	storagefix_write(f, "one", "other/new", "2");
	storagefix_snap(f, "one", "b");
	(void)snprintf(path, sizeof path, "%s.stream", f->sessions);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_ok(f->st->ops->send(f->st, "one", "a", NULL, fd, NULL, &f->err), &f->err);
	assert_ok(f->st->ops->send(f->st, "one", "b", "a", fd, NULL, &f->err), &f->err);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	src.fd = fd;
	assert_ok(f->st->ops->create(f->st, "two", &src, NULL, &at, &f->err), &f->err);
	free(at);
	assert_string_equal(storagefix_snaps(f, "two"), "a b");
	assert_true(storagefix_holds(f, "two", "other/new", "2"));
	assert_true(storagefix_holds(f, "two", "other/deep", "deep\n"));
	assert_true(storagefix_holds(f, "two", "hello", NULL));
	assert_true(storagefix_holds(f, "two", "dir/deep", NULL));
	storagefix_rollback(f, "two", "a");
	assert_true(storagefix_holds(f, "two", "dir/deep", "deep\n"));
	assert_true(storagefix_holds(f, "two", "hello", "hello\n"));
	assert_true(storagefix_holds(f, "two", "y", "1"));
	/* A part that stands on nothing that came before is refused, and leaves nothing. */
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_ok(f->st->ops->send(f->st, "one", "b", "a", fd, NULL, &f->err), &f->err);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_true(f->st->ops->create(f->st, "three", &src, NULL, &at, &f->err) < 0);
	assert_fails(f->st->ops->mount(f->st, "three", &at, &f->err), SB_E_NOTFOUND, &f->err);
	(void)close(fd);
	(void)unlink(path);
}

static void
a_damaged_stream_leaves_nothing(void **state)
{
	FIXTURE(f);
	struct sb_storage_source src = { 0 };
	char path[500], *at = NULL;
	off_t size;
	int fd;

	storagefix_create(f, "one");
	storagefix_write(f, "one", "x", "some bytes that matter");
	storagefix_snap(f, "one", "a");
	(void)snprintf(path, sizeof path, "%s.stream", f->sessions);
	fd = src.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_ok(f->st->ops->send(f->st, "one", "a", NULL, fd, NULL, &f->err), &f->err);
	size = lseek(fd, 0, SEEK_CUR);
	for (off_t i = 0; i < size; i += size / 16 + 1) {
		char was, is;

		assert_int_equal(pread(fd, &was, 1, i), 1);
		is = (char)(was ^ 0x41);
		assert_int_equal(pwrite(fd, &is, 1, i), 1);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_true(f->st->ops->create(f->st, "two", &src, NULL, &at, &f->err) < 0);
		assert_int_equal(pwrite(fd, &was, 1, i), 1);
	}
	assert_int_equal(ftruncate(fd, size - 3), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_true(f->st->ops->create(f->st, "two", &src, NULL, &at, &f->err) < 0);
	assert_fails(f->st->ops->mount(f->st, "two", &at, &f->err), SB_E_NOTFOUND, &f->err);
	(void)close(fd);
	(void)unlink(path);
}

/* Writes until it is refused, at most `max` bytes; how many went. */
static size_t
fill(const char *path, size_t max)
{
	static char block[1 << 16];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	size_t n = 0;

	assert_true(fd >= 0);
	while (n < max && write(fd, block, sizeof block) == (ssize_t)sizeof block && fsync(fd) == 0)
		n += sizeof block;
	(void)close(fd);
	return n;
}

/* A quota is kept, also after a rollback and a restart, or refused; never ignored. */
static void
a_quota_is_kept_or_refused(void **state)
{
	FIXTURE(f);
	const struct sb_storage_source src = { .base = "img", .fd = -1, .quota = 8 << 20 };
	char *at = NULL;

	if (!f->st->ops->quota) {
		assert_fails(f->st->ops->create(f->st, "one", &src, NULL, &at, &f->err),
			SB_E_UNSUPPORTED, &f->err);
		assert_fails(f->st->ops->mount(f->st, "one", &at, &f->err), SB_E_NOTFOUND, &f->err);
		return;
	}
	assert_ok(f->st->ops->create(f->st, "one", &src, NULL, &at, &f->err), &f->err);
	free(at);
	storagefix_snap(f, "one", "a");
	assert_true(fill(storagefix_path(f, "one", "big"), 32 << 20) <= 8 << 20);
	storagefix_rollback(f, "one", "a");
	storagefix_reopen(f);
	assert_true(fill(storagefix_path(f, "one", "big"), 32 << 20) <= 8 << 20);
	storagefix_create(f, "two");
	assert_int_equal(fill(storagefix_path(f, "two", "big"), 16 << 20), 16 << 20);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, storagefix_setup, storagefix_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_session_begins_as_its_base),
		T(an_empty_session_is_empty),
		T(sources_are_checked),
		T(rollback_brings_everything_back),
		T(later_snapshots_stay_as_a_branch),
		T(a_held_snapshot_is_not_lost),
		T(names_are_taken_once),
		T(snapshots_go_in_any_order),
		T(forks_live_on_without_their_origin),
		T(everything_is_there_after_a_restart),
		T(an_unchanged_workspace_is_known),
		T(sizes_follow_what_is_written),
		T(diff_tells_what_changed),
		T(diff_follows_renamed_directories),
		T(renames_survive_many_snapshots),
		T(attributes_are_kept),
		T(bases_are_listed),
		T(streams_carry_a_chain),
		T(a_damaged_stream_leaves_nothing),
		T(a_quota_is_kept_or_refused),
	};

	return cmocka_run_group_tests(tests, storagefix_group_setup, storagefix_group_teardown);
}
