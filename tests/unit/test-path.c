/* SPDX-License-Identifier: MIT */
/*
 * Paths beneath a root: their form, and that no link leads out. What resolves them runs with
 * openat2 and again without it.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <base/cleanup.h>

#include "tests/lib/tmpdir.h"
#include "tests/lib/unit.h"

/* Every test that resolves paths runs with openat2 and again with the walk. */
static int
setup_walk(void **state)
{
	sb_path_force_walk(true);
	return tmpdir_setup(state);
}

static int
teardown_walk(void **state)
{
	sb_path_force_walk(false);
	return tmpdir_teardown(state);
}

static void
make_dir(const struct tmpdir *t, const char *name)
{
	assert_int_equal(mkdirat(t->fd, name, 0755), 0);
}

static void
make_link(const struct tmpdir *t, const char *target, const char *name)
{
	assert_int_equal(symlinkat(target, t->fd, name), 0);
}

static void
assert_exists(const struct tmpdir *t, const char *name, bool want)
{
	struct stat st;

	if (!fstatat(t->fd, name, &st, AT_SYMLINK_NOFOLLOW) != want)
		fail_msg("%s %s", name, want ? "is gone" : "exists");
}

static void
form_is_checked(void **state)
{
	static const struct {
		const char *path;
		const char *msg;
	} bad[] = {
		{ "/", "/: an absolute path" },
		{ "/etc/passwd", "/etc/passwd: an absolute path" },
		{ "a//b", "a//b: holds an empty component" },
		{ "a/", "a/: holds an empty component" },
		{ ".", ".: holds the component \".\"" },
		{ "a/./b", "a/./b: holds the component \".\"" },
		{ "..", "..: holds the component \"..\"" },
		{ "a/..", "a/..: holds the component \"..\"" },
		{ "../a", "../a: holds the component \"..\"" },
		{ "a\n/../b", "a\\n/../b: holds the component \"..\"" },
	};
	static const char *const good[] = { "", "a", "a/b", "...", ".a", "..a", "a..",
		"a\n\x1b\xff" };
	struct sb_error err = { 0 };
	char name[300];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_fails(sb_path_check(bad[i].path, strlen(bad[i].path), &err), SB_E_ESCAPE,
			&err);
		assert_string_equal(err.msg, bad[i].msg);
	}
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_ok(sb_path_check(good[i], strlen(good[i]), &err), &err);
	assert_fails(sb_path_check("a\0b", 3, &err), SB_E_ESCAPE, &err);
	assert_string_equal(err.msg, "a\\x00b: holds a NUL byte");
	assert_fails(sb_path_check("a\0", 2, &err), SB_E_ESCAPE, &err);
	/* Only `len` bytes count. */
	assert_ok(sb_path_check("a/../b", 1, &err), &err);
	memset(name, 'n', sizeof name);
	assert_ok(sb_path_check(name, 255, &err), &err);
	assert_fails(sb_path_check(name, 256, &err), SB_E_ESCAPE, &err);
	assert_non_null(strstr(err.msg, "a name longer than 255 bytes"));
	assert_int_equal(sb_path_check("..", 2, NULL), SB_E_ESCAPE);
}

static void
every_call_refuses_bad_forms(void **state)
{
	static const char *const bad[] = { "../x", "/x", "a//b", "a/." };
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	const char *leaf = "untouched";
	struct stat st;

	make_dir(t, "a");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_fails(sb_path_open(t->fd, bad[i], O_RDONLY, 0, &err), SB_E_ESCAPE, &err);
		assert_fails(sb_path_open_parent(t->fd, bad[i], &leaf, &err), SB_E_ESCAPE, &err);
		assert_fails(sb_path_stat(t->fd, bad[i], &st, &err), SB_E_ESCAPE, &err);
		assert_fails(sb_path_mkdirs(t->fd, bad[i], 0755, &err), SB_E_ESCAPE, &err);
		assert_fails(sb_path_remove_tree(t->fd, bad[i], &err), SB_E_ESCAPE, &err);
	}
	assert_string_equal(leaf, "untouched");
	assert_fails(sb_path_remove_tree(t->fd, "a/b", &err), SB_E_ESCAPE, &err);
	assert_string_equal(err.msg, "remove: \"a/b\" is not a single name");
	assert_fails(sb_path_remove_tree(t->fd, "", &err), SB_E_ESCAPE, &err);
	assert_exists(t, "a", true);
}

static void
root_is_opened_through_symlinks(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	char path[300];
	int fd;

	make_dir(t, "d");
	make_link(t, "d", "l");
	tmpdir_file(t, "f", "x");
	(void)snprintf(path, sizeof path, "%s/l", t->path);
	fd = sb_path_open_root(path, &err);
	assert_ok(fd, &err);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fsync(fd), 0);
	(void)close(fd);
	(void)snprintf(path, sizeof path, "%s/none", t->path);
	assert_fails(sb_path_open_root(path, &err), SB_E_NOTFOUND, &err);
	(void)snprintf(path, sizeof path, "%s/f", t->path);
	assert_fails(sb_path_open_root(path, &err), SB_E_SYS, &err);
	assert_int_equal(err.sys, ENOTDIR);
}

static void
opens_files_and_directories(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	struct stat st;
	char text[8] = "";
	int fd;

	make_dir(t, "a");
	make_dir(t, "a/b");
	fd = sb_path_open(t->fd, "a/b/f", O_RDWR | O_CREAT | O_EXCL, 0640, &err);
	assert_ok(fd, &err);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(fd, "hello", 5), 5);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0137, 0);
	(void)close(fd);
	fd = sb_path_open(t->fd, "a/b/f", O_RDONLY, 0, &err);
	assert_ok(fd, &err);
	assert_int_equal(read(fd, text, sizeof text), 5);
	assert_string_equal(text, "hello");
	(void)close(fd);
	fd = sb_path_open(t->fd, "", O_RDONLY | O_DIRECTORY, 0, &err);
	assert_ok(fd, &err);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	(void)close(fd);
	fd = sb_path_open(t->fd, "a/b", O_RDONLY | O_DIRECTORY, 0, &err);
	assert_ok(fd, &err);
	(void)close(fd);
	assert_fails(sb_path_open(t->fd, "a/b/f", O_RDWR | O_CREAT | O_EXCL, 0640, &err),
		SB_E_EXISTS, &err);
	assert_fails(sb_path_open(t->fd, "a/none", O_RDONLY, 0, &err), SB_E_NOTFOUND, &err);
	assert_string_equal(err.msg, "open a/none: No such file or directory");
	assert_fails(sb_path_open(t->fd, "none/f", O_RDONLY, 0, &err), SB_E_NOTFOUND, &err);
	assert_fails(sb_path_open(t->fd, "a/b/f/x", O_RDONLY, 0, &err), SB_E_SYS, &err);
	assert_int_equal(err.sys, ENOTDIR);
	assert_fails(sb_path_open(t->fd, "a/b/f", O_RDONLY | O_DIRECTORY, 0, &err), SB_E_SYS, &err);
	assert_int_equal(err.sys, ENOTDIR);
	assert_int_equal(sb_path_open(t->fd, "a/none", O_RDONLY, 0, NULL), SB_E_NOTFOUND);
}

static void
no_symlink_is_followed(void **state)
{
	static const char *const through[] = { "d/in/f", "d/abs/passwd", "d/up/f", "d/self/self",
		"d/in", "d/abs", "d/gone", "d/file", "d/self" };
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	const char *leaf;
	struct stat st;

	make_dir(t, "d");
	make_dir(t, "d/real");
	tmpdir_file(t, "d/real/f", "x");
	make_link(t, "real", "d/in");
	make_link(t, "/etc", "d/abs");
	make_link(t, "../d/real", "d/up");
	make_link(t, "nothing", "d/gone");
	make_link(t, "real/f", "d/file");
	make_link(t, "self", "d/self");
	for (size_t i = 0; i < sizeof through / sizeof through[0]; i++) {
		assert_fails(sb_path_open(t->fd, through[i], O_RDONLY, 0, &err), SB_E_ESCAPE, &err);
		assert_fails(sb_path_open(t->fd, through[i], O_RDONLY | O_DIRECTORY, 0, &err),
			SB_E_ESCAPE, &err);
		assert_fails(sb_path_open(t->fd, through[i], O_RDWR | O_CREAT, 0644, &err),
			SB_E_ESCAPE, &err);
		assert_fails(sb_path_mkdirs(t->fd, through[i], 0755, &err), SB_E_ESCAPE, &err);
	}
	assert_string_equal(err.msg, "make directory d/self: a symlink is on its way");
	assert_exists(t, "d/nothing", false);
	assert_fails(sb_path_stat(t->fd, "d/in/f", &st, &err), SB_E_ESCAPE, &err);
	assert_fails(sb_path_open_parent(t->fd, "d/in/f", &leaf, &err), SB_E_ESCAPE, &err);
	assert_fails(sb_path_open_parent(t->fd, "d/self/f", &leaf, &err), SB_E_ESCAPE, &err);
	assert_ok(sb_path_stat(t->fd, "d/in", &st, &err), &err);
	assert_true(S_ISLNK(st.st_mode));
	assert_fails(sb_path_open(t->fd, "d/in", O_RDWR | O_CREAT | O_EXCL, 0644, &err),
		SB_E_EXISTS, &err);
}

static void
a_link_itself_can_be_held(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	struct stat st;
	char target[16] = "";
	int fd;

	make_link(t, "x", "l");
	fd = sb_path_open(t->fd, "l", O_PATH, 0, &err);
	assert_ok(fd, &err);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(readlinkat(fd, "", target, sizeof target), 1);
	(void)close(fd);
}

static void
magic_links_are_refused(void **state)
{
	static const char *const magic[] = { "root/etc", "root", "cwd", "cwd/x", "exe", "fd/0",
		"task/self/root/etc" };
	struct sb_error err = { 0 };
	int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	if (proc < 0)
		skip_because("no /proc");
	for (size_t i = 0; i + 1 < sizeof magic / sizeof magic[0]; i++)
		assert_fails(sb_path_open(proc, magic[i], O_RDONLY, 0, &err), SB_E_ESCAPE, &err);
	assert_fails(sb_path_open(proc, magic[6], O_RDONLY, 0, &err), SB_E_NOTFOUND, &err);
	(void)close(proc);
}

static void
longest_names_work(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	char path[600];
	struct stat st;
	int fd;

	memset(path, 'n', sizeof path);
	path[255] = '/';
	path[511] = 0;
	assert_ok(sb_path_mkdirs(t->fd, path, 0755, &err), &err);
	assert_ok(sb_path_stat(t->fd, path, &st, &err), &err);
	fd = sb_path_open(t->fd, path, O_RDONLY, 0, &err);
	assert_ok(fd, &err);
	(void)close(fd);
	path[511] = 'n';
	path[512] = 0;
	assert_fails(sb_path_mkdirs(t->fd, path, 0755, &err), SB_E_ESCAPE, &err);
	assert_fails(sb_path_open(t->fd, path, O_RDONLY, 0, &err), SB_E_ESCAPE, &err);
}

/* `n` components of `width` bytes. */
static char *
deep_path(size_t n, size_t width)
{
	char *path = malloc(n * (width + 1));

	assert_non_null(path);
	memset(path, 'd', n * (width + 1));
	for (size_t i = 1; i <= n; i++)
		path[i * (width + 1) - 1] = i < n ? '/' : 0;
	return path;
}

static void
paths_longer_than_path_max_work(void **state)
{
	static const size_t widths[] = { 1, 7, 100, 255 };
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };

	for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
		/* Several pieces, but not with short names: that would be many directories. */
		size_t pieces = widths[i] < 10 ? 1 : 3;
		size_t n = pieces * PATH_MAX / (widths[i] + 1) + 1;
		sb_autofree char *path = deep_path(n, widths[i]);
		const char *leaf = NULL;
		struct stat st;
		int fd;

		assert_true(strlen(path) >= pieces * PATH_MAX);
		assert_ok(sb_path_mkdirs(t->fd, path, 0755, &err), &err);
		assert_ok(sb_path_mkdirs(t->fd, path, 0755, &err), &err);
		assert_ok(sb_path_stat(t->fd, path, &st, &err), &err);
		assert_true(S_ISDIR(st.st_mode));
		fd = sb_path_open_parent(t->fd, path, &leaf, &err);
		assert_ok(fd, &err);
		assert_ptr_equal(leaf, path + strlen(path) - widths[i]);
		assert_int_equal(unlinkat(fd, leaf, AT_REMOVEDIR), 0);
		assert_fails(sb_path_open(t->fd, path, O_RDONLY, 0, &err), SB_E_NOTFOUND, &err);
		assert_int_equal(symlinkat("/etc", fd, leaf), 0);
		(void)close(fd);
		assert_fails(sb_path_open(t->fd, path, O_RDONLY, 0, &err), SB_E_ESCAPE, &err);
		path[widths[i]] = 0;
		assert_ok(sb_path_remove_tree(t->fd, path, &err), &err);
		assert_exists(t, path, false);
	}
}

static void
paths_of_about_path_max_work(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };

	for (size_t len = PATH_MAX - 2; len <= PATH_MAX + 2; len++) {
		/* The last component takes up what is left of the length. */
		sb_autofree char *path = deep_path(42, 99);
		struct stat st;
		int fd;

		path[len] = 0;
		assert_ok(sb_path_mkdirs(t->fd, path, 0755, &err), &err);
		assert_ok(sb_path_stat(t->fd, path, &st, &err), &err);
		fd = sb_path_open(t->fd, path, O_RDONLY | O_DIRECTORY, 0, &err);
		assert_ok(fd, &err);
		(void)close(fd);
	}
}

static void
parent_can_be_synced(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	static const char one[] = "f";
	static const char two[] = "a/f";
	const char *leaf = NULL;
	struct stat st;
	struct stat root;
	int fd;

	make_dir(t, "a");
	assert_int_equal(fstat(t->fd, &root), 0);
	fd = sb_path_open_parent(t->fd, two, &leaf, &err);
	assert_ok(fd, &err);
	assert_ptr_equal(leaf, two + 2);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	(void)close(fd);
	fd = sb_path_open_parent(t->fd, one, &leaf, &err);
	assert_ok(fd, &err);
	assert_ptr_equal(leaf, one);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_ino == root.st_ino);
	(void)close(fd);
	fd = sb_path_open_parent(t->fd, "", &leaf, &err);
	assert_ok(fd, &err);
	assert_string_equal(leaf, ".");
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_ino == root.st_ino);
	(void)close(fd);
	assert_fails(sb_path_open_parent(t->fd, "none/f", &leaf, &err), SB_E_NOTFOUND, &err);
}

static void
stat_says_what_is_there(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	struct stat root;
	struct stat st = { .st_size = 77 };

	make_dir(t, "a");
	tmpdir_file(t, "a/f", "12345");
	assert_fails(sb_path_stat(t->fd, "a/none", &st, &err), SB_E_NOTFOUND, &err);
	assert_fails(sb_path_stat(t->fd, "none/f", &st, &err), SB_E_NOTFOUND, &err);
	assert_fails(sb_path_stat(t->fd, "a/f/x", &st, &err), SB_E_NOTFOUND, &err);
	assert_fails(sb_path_stat(t->fd, "a/f/x/y", &st, &err), SB_E_NOTFOUND, &err);
	assert_int_equal(st.st_size, 77);
	assert_ok(sb_path_stat(t->fd, "a/f", &st, &err), &err);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(fstat(t->fd, &root), 0);
	assert_ok(sb_path_stat(t->fd, "", &st, &err), &err);
	assert_true(st.st_ino == root.st_ino);
}

static void
mkdirs_leaves_what_exists(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	struct stat st;

	make_dir(t, "a");
	assert_int_equal(fchmodat(t->fd, "a", 0711, 0), 0);
	tmpdir_file(t, "a/f", "x");
	assert_ok(sb_path_mkdirs(t->fd, "", 0700, &err), &err);
	assert_ok(sb_path_mkdirs(t->fd, "a/b/c", 0700, &err), &err);
	assert_ok(sb_path_mkdirs(t->fd, "a/b/c", 0755, &err), &err);
	assert_ok(sb_path_stat(t->fd, "a", &st, &err), &err);
	assert_int_equal(st.st_mode & 0777, 0711);
	assert_ok(sb_path_stat(t->fd, "a/b/c", &st, &err), &err);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_fails(sb_path_mkdirs(t->fd, "a/f", 0700, &err), SB_E_EXISTS, &err);
	assert_fails(sb_path_mkdirs(t->fd, "a/f/x/y", 0700, &err), SB_E_EXISTS, &err);
	assert_string_equal(err.msg, "make directory a/f/x/y: exists and is not a directory");
}

/*
 * Runs `fn` in a child, where it may change what cannot be changed back; its result is the exit
 * code.
 */
static int
in_child(int (*fn)(const struct tmpdir *t), const struct tmpdir *t)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(fn(t));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define CHILD_SKIP 77

/* From now on openat2 answers with `sys`. */
static bool
forbid_openat2(unsigned sys)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | sys),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof code / sizeof code[0], .filter = code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
		!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int
works_without_openat2(const struct tmpdir *t, unsigned sys)
{
	struct sb_error err = { 0 };

	if (!forbid_openat2(sys))
		return CHILD_SKIP;
	for (int i = 0; i < 2; i++) {
		int fd = sb_path_open(t->fd, "a/f", O_RDONLY, 0, &err);

		if (fd < 0)
			return 1;
		(void)close(fd);
		if (sb_path_open(t->fd, "l/f", O_RDONLY, 0, &err) != SB_E_ESCAPE)
			return 2;
		if (sb_path_open(t->fd, "a/none", O_RDONLY, 0, &err) != SB_E_NOTFOUND)
			return 3;
	}
	return 0;
}

static int
works_with_enosys(const struct tmpdir *t)
{
	return works_without_openat2(t, ENOSYS);
}

static int
works_with_eperm(const struct tmpdir *t)
{
	return works_without_openat2(t, EPERM);
}

static void
falls_back_where_openat2_is_not_allowed(void **state)
{
	const struct tmpdir *t = *state;
	int r;

	make_dir(t, "a");
	tmpdir_file(t, "a/f", "x");
	make_link(t, "a", "l");
	r = in_child(works_with_enosys, t);
	if (r == CHILD_SKIP)
		skip_because("no seccomp filter can be set here");
	assert_int_equal(r, 0);
	assert_int_equal(in_child(works_with_eperm, t), 0);
}

int
main(void)
{
#define BOTH(fn) \
	{ #fn " (openat2)", fn, tmpdir_setup, tmpdir_teardown, NULL }, \
	{ \
#fn " (walk)", fn, setup_walk, teardown_walk, NULL \
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(form_is_checked),
		BOTH(every_call_refuses_bad_forms),
		cmocka_unit_test_setup_teardown(root_is_opened_through_symlinks, tmpdir_setup,
			tmpdir_teardown),
		BOTH(opens_files_and_directories),
		BOTH(no_symlink_is_followed),
		BOTH(a_link_itself_can_be_held),
		BOTH(magic_links_are_refused),
		BOTH(longest_names_work),
		BOTH(paths_longer_than_path_max_work),
		BOTH(paths_of_about_path_max_work),
		BOTH(parent_can_be_synced),
		BOTH(stat_says_what_is_there),
		BOTH(mkdirs_leaves_what_exists),
		cmocka_unit_test_setup_teardown(falls_back_where_openat2_is_not_allowed,
			tmpdir_setup, tmpdir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
