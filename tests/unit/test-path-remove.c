/* SPDX-License-Identifier: MIT */
/*
 * Removing a tree: whatever it holds goes, and a rival who swaps directories leads nothing outside.
 */
#include "config.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <base/cleanup.h>

#include "tests/lib/tmpdir.h"
#include "tests/lib/unit.h"

#define CHILD_SKIP 77

static bool
exists(const struct tmpdir *t, const char *name)
{
	struct stat st;

	return !fstatat(t->fd, name, &st, AT_SYMLINK_NOFOLLOW);
}

static void
make_dir(const struct tmpdir *t, const char *name)
{
	assert_int_equal(mkdirat(t->fd, name, 0755), 0);
}

static void
removes_whatever_it_is(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	static const char *const names[] = { "file", "dir", "tree", "link", "dangling", "fifo",
		"ro", "-r", "\n\xff" };

	make_dir(t, "keep");
	tmpdir_file(t, "keep/f", "x");
	tmpdir_file(t, "file", "x");
	tmpdir_file(t, "ro", "x");
	tmpdir_file(t, "-r", "x");
	tmpdir_file(t, "\n\xff", "x");
	assert_int_equal(fchmodat(t->fd, "ro", 0, 0), 0);
	make_dir(t, "dir");
	make_dir(t, "tree");
	make_dir(t, "tree/sub");
	tmpdir_file(t, "tree/f", "x");
	tmpdir_file(t, "tree/sub/f", "x");
	assert_int_equal(symlinkat("../../keep", t->fd, "tree/sub/out"), 0);
	assert_int_equal(symlinkat("keep", t->fd, "link"), 0);
	assert_int_equal(symlinkat("nothing", t->fd, "dangling"), 0);
	assert_int_equal(mkfifoat(t->fd, "fifo", 0600), 0);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		assert_ok(sb_path_remove_tree(t->fd, names[i], &err), &err);
		assert_false(exists(t, names[i]));
		assert_ok(sb_path_remove_tree(t->fd, names[i], &err), &err);
	}
	assert_true(exists(t, "keep/f"));
}

static void
deep_and_wide_trees_go(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	sb_autofree char *path = malloc(1600);
	char name[64];

	assert_non_null(path);
	memset(path, 'd', 1600);
	for (size_t i = 1; i < 1600; i += 2)
		path[i] = i + 1 < 1600 ? '/' : 0;
	assert_ok(sb_path_mkdirs(t->fd, path, 0755, &err), &err);
	/* Siblings on every level of the first hundred: coming back up must find them. */
	for (size_t i = 0; i < 100; i++) {
		path[2 * i + 1] = 0;
		for (int k = 0; k < 3; k++) {
			int fd = sb_path_open(t->fd, path, O_RDONLY, 0, &err);

			assert_ok(fd, &err);
			(void)snprintf(name, sizeof name, "side%d", k);
			assert_int_equal(mkdirat(fd, name, 0755), 0);
			(void)close(fd);
		}
		path[2 * i + 1] = '/';
	}
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof name, "d/a-longer-name-for-many-entries-%d", i);
		make_dir(t, name);
	}
	assert_ok(sb_path_remove_tree(t->fd, "d", &err), &err);
	assert_false(exists(t, "d"));
}

/* Permissions mean nothing to root, so this runs as someone else. */
static int
remove_unwritable(const struct tmpdir *t)
{
	struct sb_error err = { 0 };
	int fd;

	if (!geteuid() &&
		(setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
			setresuid(65534, 65534, 65534)))
		return CHILD_SKIP;
	fd = openat(t->fd, "home", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || mkdirat(fd, "t", 0700) || mkdirat(fd, "t/a", 0700) ||
		mkdirat(fd, "t/a/b", 0700))
		return 2;
	(void)close(openat(fd, "t/a/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0400));
	if (fchmodat(fd, "t/a/b", 0, 0) || fchmodat(fd, "t/a", 0555, 0) || fchmodat(fd, "t", 0, 0))
		return 3;
	if (sb_path_remove_tree(fd, "t", &err) < 0) {
		print_message("%s\n", err.msg);
		return 4;
	}
	return faccessat(fd, "t", F_OK, AT_SYMLINK_NOFOLLOW) ? 0 : 5;
}

/* What may not be removed is an error, and says so. */
static int
remove_foreign(const struct tmpdir *t)
{
	struct sb_error err = { 0 };

	if (!geteuid() &&
		(setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
			setresuid(65534, 65534, 65534)))
		return CHILD_SKIP;
	if (!faccessat(t->fd, "locked", W_OK, AT_EACCESS))
		return CHILD_SKIP;
	if (sb_path_remove_tree(t->fd, "locked", &err) != SB_E_DENIED)
		return 1;
	return strcmp(err.msg, "remove f: Permission denied") ? 2 : 0;
}

static int
remove_mounted(const struct tmpdir *before)
{
	struct tmpdir after = *before;
	const struct tmpdir *t = &after;
	struct sb_error err = { 0 };
	char path[300];
	char keep[300];

	(void)snprintf(path, sizeof path, "%s/tree/mnt", t->path);
	(void)snprintf(keep, sizeof keep, "%s/keep", t->path);
	if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
		mount("tmpfs", path, "tmpfs", 0, "size=64k"))
		return CHILD_SKIP;
	/* The old descriptor still sees the tree without the new mounts. */
	after.fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mkdirat(t->fd, "tree/mnt/inside", 0755))
		return 2;
	if (sb_path_remove_tree(t->fd, "tree", &err) != SB_E_STATE || !exists(t, "tree/mnt/inside"))
		return 3;
	/* A bind mount has the device number of what is around it. */
	if (umount2(path, MNT_DETACH) || mount(keep, path, "none", MS_BIND, NULL))
		return 4;
	if (sb_path_remove_tree(t->fd, "tree", &err) != SB_E_STATE || !exists(t, "keep/f"))
		return 5;
	if (strcmp(err.msg, "remove mnt: something is mounted there, unmount it first"))
		return 6;
	if (mount(keep, keep, "none", MS_BIND, NULL) ||
		sb_path_remove_tree(t->fd, "keep", &err) != SB_E_STATE)
		return 7;
	return exists(t, "keep/f") ? 0 : 8;
}

static void
check_in_child(int (*fn)(const struct tmpdir *t), const struct tmpdir *t)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(fn(t));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == CHILD_SKIP) {
		skip_because("not allowed here (needs root)");
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
unwritable_directories_go(void **state)
{
	const struct tmpdir *t = *state;

	make_dir(t, "home");
	assert_int_equal(fchmodat(t->fd, "home", 0777, 0), 0);
	assert_int_equal(fchmod(t->fd, 0755), 0);
	check_in_child(remove_unwritable, t);
}

static void
foreign_directories_stay(void **state)
{
	const struct tmpdir *t = *state;

	make_dir(t, "locked");
	tmpdir_file(t, "locked/f", "x");
	assert_int_equal(fchmod(t->fd, 0777), 0);
	check_in_child(remove_foreign, t);
	assert_true(exists(t, "locked/f"));
}

static void
mounts_are_not_entered(void **state)
{
	const struct tmpdir *t = *state;

	make_dir(t, "tree");
	make_dir(t, "tree/mnt");
	make_dir(t, "keep");
	tmpdir_file(t, "keep/f", "x");
	check_in_child(remove_mounted, t);
}

/* Swaps two names until told to stop. */
struct swapper {
	int fd;
	const char *a;
	const char *b;
	atomic_bool stop;
};

static void *
swap_names(void *arg)
{
	struct swapper *s = arg;

	while (!atomic_load(&s->stop))
		(void)renameat2(s->fd, s->a, s->fd, s->b, RENAME_EXCHANGE);
	return NULL;
}

/* A directory that becomes a symlink to outside and back while it is used. */
static void
race_setup(const struct tmpdir *t)
{
	make_dir(t, "outside");
	tmpdir_file(t, "outside/f", "secret");
	make_dir(t, "root");
	make_dir(t, "root/d");
	make_dir(t, "root/d/e");
	tmpdir_file(t, "root/d/e/f", "inside");
	assert_int_equal(symlinkat("../../outside", t->fd, "root/d/l"), 0);
}

static void
opening_never_ends_outside(void **state)
{
	const struct tmpdir *t = *state;
	struct swapper s = { .a = "d/e", .b = "d/l" };
	int opened = 0;
	int refused = 0;
	pthread_t thread;
	int root;

	race_setup(t);
	s.fd = root = openat(t->fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	atomic_init(&s.stop, false);
	assert_int_equal(pthread_create(&thread, NULL, swap_names, &s), 0);
	/* At least so many tries, and on until both states were met. */
	for (int i = 0; i < 10000 || (i < 10000000 && (!opened || !refused)); i++) {
		struct sb_error err = { 0 };
		char text[8] = "";
		int fd;

		sb_path_force_walk(i & 1);
		fd = sb_path_open(root, i % 3 ? "d/e/f" : "d/e/new",
			i % 3 ? O_RDONLY : O_RDWR | O_CREAT, 0644, &err);
		if (fd < 0) {
			refused++;
			if (fd != SB_E_ESCAPE)
				fail_msg("%s", err.msg);
			continue;
		}
		opened++;
		assert_true(read(fd, text, sizeof text - 1) >= 0);
		(void)close(fd);
		assert_string_equal(text, i % 3 ? "inside" : "");
		if (i % 16 == 0 && sb_path_mkdirs(root, "d/e/x/y", 0755, &err) < 0)
			assert_int_equal(err.code, SB_E_ESCAPE);
	}
	atomic_store(&s.stop, true);
	(void)pthread_join(thread, NULL);
	sb_path_force_walk(false);
	(void)close(root);
	assert_true(opened && refused);
	assert_false(exists(t, "outside/new"));
	assert_false(exists(t, "outside/x"));
}

static void
removing_never_ends_outside(void **state)
{
	const struct tmpdir *t = *state;
	struct swapper s = { .fd = t->fd, .a = "root/d/e", .b = "l" };
	struct sb_error err = { 0 };
	pthread_t thread;

	make_dir(t, "outside");
	tmpdir_file(t, "outside/f", "secret");
	make_dir(t, "root");
	atomic_init(&s.stop, false);
	assert_int_equal(pthread_create(&thread, NULL, swap_names, &s), 0);
	for (int i = 0; i < 40; i++) {
		/*
		 * Any of these may fail while names change under it; none may reach what the link
		 * points to.
		 */
		(void)sb_path_remove_tree(t->fd, "l", NULL);
		(void)symlinkat("../../outside", t->fd, "l");
		(void)sb_path_mkdirs(t->fd, "root/d/e/g", 0755, NULL);
		(void)sb_path_remove_tree(t->fd, "root", NULL);
		if (!exists(t, "outside/f"))
			fail_msg("removed a file outside in round %d", i);
	}
	atomic_store(&s.stop, true);
	(void)pthread_join(thread, NULL);
	assert_ok(sb_path_remove_tree(t->fd, "root", &err), &err);
	assert_ok(sb_path_remove_tree(t->fd, "l", &err), &err);
	assert_true(exists(t, "outside/f"));
}

/* Moves a directory out of the tree and back until told to stop. */
static void *
move_away(void *arg)
{
	struct swapper *s = arg;

	while (!atomic_load(&s->stop)) {
		(void)renameat(s->fd, s->a, s->fd, s->b);
		(void)renameat(s->fd, s->b, s->fd, s->a);
	}
	return NULL;
}

/*
 * So deep that the way back goes through "..", which leads elsewhere once the directory was moved.
 * What lies there has the names that are being removed.
 */
static void
coming_back_never_ends_outside(void **state)
{
	const struct tmpdir *t = *state;
	struct swapper s = { .fd = t->fd, .b = "outside/d" };
	struct sb_error err = { 0 };
	char deep[200];
	char half[200];
	pthread_t thread;

	memset(deep, 'd', sizeof deep);
	for (size_t i = 1; i < sizeof deep; i += 2)
		deep[i] = i + 1 < sizeof deep ? '/' : 0;
	memcpy(half, deep, sizeof half);
	half[59] = 0;
	s.a = half;
	make_dir(t, "outside");
	tmpdir_file(t, "outside/f", "secret");
	atomic_init(&s.stop, false);
	assert_int_equal(pthread_create(&thread, NULL, move_away, &s), 0);
	for (int i = 0; i < 12; i++) {
		(void)sb_path_mkdirs(t->fd, deep, 0755, NULL);
		(void)sb_path_remove_tree(t->fd, "d", NULL);
		if (!exists(t, "outside/f"))
			fail_msg("removed a file outside in round %d", i);
	}
	atomic_store(&s.stop, true);
	(void)pthread_join(thread, NULL);
	assert_ok(sb_path_remove_tree(t->fd, "d", &err), &err);
}

/* Makes files in a directory for as long as it exists. */
static void *
fill(void *arg)
{
	struct swapper *s = arg;
	char name[32];

	for (int i = 0; i < 20000 && !atomic_load(&s->stop); i++) {
		int fd;

		(void)snprintf(name, sizeof name, "d/n%d", i);
		fd = openat(s->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0)
			(void)close(fd);
	}
	return NULL;
}

static void
a_directory_being_filled_ends_without_a_crash(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	struct swapper s = { .fd = t->fd };
	pthread_t thread;
	int r;

	make_dir(t, "d");
	for (int i = 0; i < 500; i++) {
		char name[32];

		(void)snprintf(name, sizeof name, "d/old%d", i);
		tmpdir_file(t, name, "");
	}
	atomic_init(&s.stop, false);
	assert_int_equal(pthread_create(&thread, NULL, fill, &s), 0);
	r = sb_path_remove_tree(t->fd, "d", &err);
	atomic_store(&s.stop, true);
	(void)pthread_join(thread, NULL);
	/*
	 * Who wins the race is open; what is not: only "not empty" may be the reason, and a second
	 * try works.
	 */
	if (r < 0)
		assert_int_equal(err.sys, ENOTEMPTY);
	assert_ok(sb_path_remove_tree(t->fd, "d", &err), &err);
	assert_false(exists(t, "d"));
}

int
main(void)
{
#define IN_TMPDIR(fn) cmocka_unit_test_setup_teardown(fn, tmpdir_setup, tmpdir_teardown)
	const struct CMUnitTest tests[] = {
		IN_TMPDIR(removes_whatever_it_is),
		IN_TMPDIR(deep_and_wide_trees_go),
		IN_TMPDIR(unwritable_directories_go),
		IN_TMPDIR(foreign_directories_stay),
		IN_TMPDIR(mounts_are_not_entered),
		IN_TMPDIR(opening_never_ends_outside),
		IN_TMPDIR(removing_never_ends_outside),
		IN_TMPDIR(coming_back_never_ends_outside),
		IN_TMPDIR(a_directory_being_filled_ends_without_a_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
