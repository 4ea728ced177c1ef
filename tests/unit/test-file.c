/* SPDX-License-Identifier: MIT */
/* Files of the base: replaced as a whole or not at all, read up to a ceiling, locked. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <base/file.h>

#include "tests/lib/tmpdir.h"
#include "tests/lib/unit.h"

#define CHILD_SKIP 77

static void
assert_content(int dirfd, const char *name, const char *want)
{
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 0);
	assert_ok(sb_file_read(dirfd, name, 4096, &b, &err), &err);
	assert_string_equal((char *)b.data, want);
}

/* How many names the directory holds. */
static int
count_entries(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(fd);
	int n = -2;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static int
run_child(int (*fn)(const struct tmpdir *t), const struct tmpdir *t)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(fn(t));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status))
		fail_msg("ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static void
replace_makes_and_replaces(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	mode_t mask = umask(077);
	char path[300];
	struct stat st;

	assert_ok(sb_file_replace(t->fd, "f", "one", 3, 0644, &err), &err);
	assert_content(t->fd, "f", "one");
	assert_int_equal(fstatat(t->fd, "f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_ok(sb_file_replace(t->fd, "f", "three", 5, 0600, &err), &err);
	assert_content(t->fd, "f", "three");
	assert_int_equal(fstatat(t->fd, "f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_ok(sb_file_replace(t->fd, "f", NULL, 0, 0600, &err), &err);
	assert_content(t->fd, "f", "");
	assert_int_equal(mkdirat(t->fd, "d", 0755), 0);
	assert_ok(sb_file_replace(t->fd, "d/g", "in", 2, 0600, &err), &err);
	assert_content(t->fd, "d/g", "in");
	(void)snprintf(path, sizeof path, "%s/d/h", t->path);
	assert_ok(sb_file_replace(AT_FDCWD, path, "abs", 3, 0600, &err), &err);
	assert_content(t->fd, "d/h", "abs");
	assert_int_equal(count_entries(t->fd), 2);
	(void)umask(mask);
}

static void
replace_does_not_follow_a_link(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	struct stat st;

	tmpdir_file(t, "target", "old");
	assert_int_equal(symlinkat("target", t->fd, "l"), 0);
	assert_ok(sb_file_replace(t->fd, "l", "new", 3, 0600, &err), &err);
	assert_int_equal(fstatat(t->fd, "l", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_content(t->fd, "target", "old");
}

static void
failed_rename_leaves_no_temporary(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };

	assert_int_equal(mkdirat(t->fd, "d\n", 0755), 0);
	assert_fails(sb_file_replace(t->fd, "d\n", "x", 1, 0600, &err), SB_E_SYS, &err);
	assert_int_equal(err.sys, EISDIR);
	assert_string_equal(err.msg, "replace d\\n: rename: Is a directory");
	assert_int_equal(count_entries(t->fd), 1);
	assert_fails(sb_file_replace(t->fd, "none/f", "x", 1, 0600, &err), SB_E_NOTFOUND, &err);
	assert_int_equal(sb_file_replace(t->fd, "none/f", "x", 1, 0600, NULL), SB_E_NOTFOUND);
}

/* A write that fails half-way. */
static int
replace_too_large(const struct tmpdir *t)
{
	static const char big[8192];
	struct rlimit small = { .rlim_cur = 4096, .rlim_max = 4096 };
	struct sb_error err = { 0 };

	(void)signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &small) < 0)
		return CHILD_SKIP;
	if (sb_file_replace(t->fd, "f", big, sizeof big, 0600, &err) != SB_E_SYS ||
		err.sys != EFBIG)
		return 1;
	return 0;
}

/* A full disk. */
static int
replace_without_space(const struct tmpdir *t)
{
	static const char big[1 << 20];
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf b;
	char path[300];
	int fd;

	sb_buf_init(&b, 0);
	(void)snprintf(path, sizeof path, "%s/mnt", t->path);
	if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
		mount("tmpfs", path, "tmpfs", 0, "size=64k"))
		return CHILD_SKIP;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sb_file_replace(fd, "f", "old", 3, 0600, &err) < 0)
		return 1;
	if (sb_file_replace(fd, "f", big, sizeof big, 0600, &err) != SB_E_NOSPACE)
		return 2;
	if (sb_file_read(fd, "f", 100, &b, &err) < 0 || strcmp((char *)b.data, "old"))
		return 3;
	return count_entries(fd) == 1 ? 0 : 4;
}

static void
failed_write_leaves_the_old_file(void **state)
{
	const struct tmpdir *t = *state;

	tmpdir_file(t, "f", "old");
	assert_int_equal(run_child(replace_too_large, t), 0);
	assert_content(t->fd, "f", "old");
	assert_int_equal(count_entries(t->fd), 1);
}

static void
full_disk_leaves_the_old_file(void **state)
{
	const struct tmpdir *t = *state;
	int r;

	assert_int_equal(mkdirat(t->fd, "mnt", 0755), 0);
	r = run_child(replace_without_space, t);
	if (r == CHILD_SKIP) {
		skip_because("cannot mount a tmpfs here (needs root)");
	}
	assert_int_equal(r, 0);
}

static void
read_obeys_the_ceiling(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	struct sb_buf b;

	tmpdir_file(t, "f", "12345");
	tmpdir_file(t, "empty", "");
	assert_ok(sb_file_read(t->fd, "f", 5, &b, &err), &err);
	assert_int_equal(b.len, 5);
	sb_buf_free(&b);
	assert_fails(sb_file_read(t->fd, "f", 4, &b, &err), SB_E_LIMIT, &err);
	assert_string_equal(err.msg, "read f: larger than 4 bytes");
	assert_int_equal(b.len, 0);
	sb_buf_free(&b);
	assert_ok(sb_file_read(t->fd, "empty", 0, &b, &err), &err);
	assert_string_equal((char *)b.data, "");
	sb_buf_free(&b);
	assert_ok(sb_file_read(t->fd, "f", SIZE_MAX / 2, &b, &err), &err);
	assert_string_equal((char *)b.data, "12345");
	sb_buf_free(&b);
	/* Files of /proc have no size before they are read. */
	assert_ok(sb_file_read(AT_FDCWD, "/proc/self/status", 1 << 20, &b, &err), &err);
	assert_true(b.len > 100);
	sb_buf_free(&b);
	assert_fails(sb_file_read(AT_FDCWD, "/proc/self/status", 100, &b, &err), SB_E_LIMIT, &err);
	sb_buf_free(&b);
}

static void
read_takes_large_files(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	size_t len = 3000001;
	uint8_t *data = malloc(len);
	struct sb_buf b;

	assert_non_null(data);
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 24);
	assert_ok(sb_file_replace(t->fd, "big", data, len, 0600, &err), &err);
	assert_ok(sb_file_read(t->fd, "big", len, &b, &err), &err);
	assert_int_equal(b.len, len);
	assert_memory_equal(b.data, data, len);
	sb_buf_free(&b);
	free(data);
}

static void
read_takes_only_regular_files(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	struct sb_buf b;

	assert_int_equal(mkdirat(t->fd, "d", 0755), 0);
	assert_int_equal(mkfifoat(t->fd, "fifo\x1b", 0600), 0);
	assert_fails(sb_file_read(t->fd, "d", 10, &b, &err), SB_E_INVAL, &err);
	assert_fails(sb_file_read(t->fd, "fifo\x1b", 10, &b, &err), SB_E_INVAL, &err);
	assert_string_equal(err.msg, "read fifo\\x1b: not a regular file");
	assert_fails(sb_file_read(AT_FDCWD, "/dev/zero", 10, &b, &err), SB_E_INVAL, &err);
	assert_fails(sb_file_read(t->fd, "none", 10, &b, &err), SB_E_NOTFOUND, &err);
	sb_buf_free(&b);
}

/* Reads a pipe to its end; the count is the result. */
static void *
swallow(void *arg)
{
	char chunk[1000];
	intptr_t total = 0;
	ssize_t n;

	while ((n = read(*(int *)arg, chunk, sizeof chunk)) > 0)
		total += n;
	return (void *)total;
}

static void
write_all_waits_for_a_slow_reader(void **state)
{
	static const char data[1000000];
	struct sb_error err = { 0 };
	void *total = NULL;
	pthread_t thread;
	int p[2];

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(fcntl(p[1], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(pthread_create(&thread, NULL, swallow, &p[0]), 0);
	assert_ok(sb_file_write_all(p[1], data, sizeof data, &err), &err);
	(void)close(p[1]);
	assert_int_equal(pthread_join(thread, &total), 0);
	assert_int_equal((intptr_t)total, sizeof data);
	(void)close(p[0]);
}

static void *
drip(void *arg)
{
	for (int i = 0; i < 10; i++) {
		(void)!write(*(int *)arg, "0123456789", 10);
		(void)sched_yield();
	}
	(void)close(*(int *)arg);
	return NULL;
}

static void
read_full_collects_until_the_end(void **state)
{
	struct sb_error err = { 0 };
	char data[200];
	pthread_t thread;
	int p[2];

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(fcntl(p[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(pthread_create(&thread, NULL, drip, &p[1]), 0);
	assert_int_equal(sb_file_read_full(p[0], data, 45, &err), 45);
	assert_int_equal(sb_file_read_full(p[0], data, sizeof data, &err), 55);
	assert_int_equal(sb_file_read_full(p[0], data, sizeof data, &err), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)close(p[0]);
}

static void
bad_descriptors_are_errors(void **state)
{
	struct sb_error err = { 0 };
	char c = 0;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_fails(sb_file_write_all(fd, "x", 1, &err), SB_E_SYS, &err);
	assert_int_equal(err.sys, EBADF);
	(void)close(fd);
	assert_int_equal(sb_file_read_full(-1, &c, 1, &err), SB_E_SYS);
	assert_ok(sb_file_write_all(-1, "", 0, &err), &err);
}

static int
write_to_closed(const struct tmpdir *t)
{
	sigset_t set;
	int p[2];

	(void)t;
	(void)signal(SIGPIPE, SIG_DFL);
	if (pipe2(p, O_CLOEXEC) || close(p[0]))
		return 1;
	if (sb_file_write_nosig(p[1], "x", 1) != -1 || errno != EPIPE)
		return 2;
	/* One that was pending before must stay. */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)raise(SIGPIPE);
	if (sb_file_write_nosig(p[1], "x", 1) != -1 || errno != EPIPE)
		return 3;
	if (sigpending(&set) || sigismember(&set, SIGPIPE) != 1)
		return 4;
	return 0;
}

/* Closes the reading end once the pipe is full and the writer waits in the middle. */
static void *
close_when_full(void *arg)
{
	const int *p = arg;
	int have = 0;

	while (ioctl(p[0], FIONREAD, &have) == 0 && have < 65536)
		(void)sched_yield();
	(void)close(p[0]);
	return NULL;
}

static int
write_while_closing(const struct tmpdir *t)
{
	static char data[1 << 20];
	pthread_t th;
	int p[2];

	(void)t;
	(void)signal(SIGPIPE, SIG_DFL);
	if (pipe2(p, O_CLOEXEC) || pthread_create(&th, NULL, close_when_full, p))
		return 1;
	if (sb_file_write_nosig(p[1], data, sizeof data) != 65536)
		return 2;
	(void)pthread_join(th, NULL);
	return 0;
}

static void
write_nosig_raises_no_signal(void **state)
{
	assert_int_equal(run_child(write_to_closed, *state), 0);
	assert_int_equal(run_child(write_while_closing, *state), 0);
}

static void
mkdirs_makes_parents(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	char path[400];
	struct stat st;

	(void)snprintf(path, sizeof path, "%s/a/b//c/", t->path);
	assert_ok(sb_file_mkdirs(path, 0700, &err), &err);
	assert_ok(sb_file_mkdirs(path, 0755, &err), &err);
	assert_int_equal(fstatat(t->fd, "a/b/c", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(symlinkat("a", t->fd, "l"), 0);
	(void)snprintf(path, sizeof path, "%s/l/d", t->path);
	assert_ok(sb_file_mkdirs(path, 0700, &err), &err);
	assert_int_equal(fstatat(t->fd, "a/d", &st, 0), 0);
	tmpdir_file(t, "f", "x");
	(void)snprintf(path, sizeof path, "%s/f", t->path);
	assert_fails(sb_file_mkdirs(path, 0700, &err), SB_E_SYS, &err);
	assert_int_equal(err.sys, ENOTDIR);
	(void)snprintf(path, sizeof path, "%s/f/x/y", t->path);
	assert_fails(sb_file_mkdirs(path, 0700, &err), SB_E_SYS, &err);
	assert_int_equal(err.sys, ENOTDIR);
	assert_fails(sb_file_mkdirs("", 0700, &err), SB_E_INVAL, &err);
	assert_ok(sb_file_mkdirs("/", 0700, &err), &err);
	assert_ok(sb_file_mkdirs(".", 0700, &err), &err);
	assert_fails(sb_file_mkdirs("/proc/none/x", 0700, &err), SB_E_NOTFOUND, &err);
}

/* As a child does that another thread has just forked. */
static void
unlock_does_not_wait_for_copies(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	int a, b, copy;

	tmpdir_file(t, "lock", "");
	a = openat(t->fd, "lock", O_RDWR | O_CLOEXEC);
	b = openat(t->fd, "lock", O_RDWR | O_CLOEXEC);
	copy = dup(a);
	assert_ok(sb_file_lock(a, 0, &err), &err);
	assert_fails(sb_file_lock(b, 0, &err), SB_E_LOCKED, &err);
	sb_file_unlock(a);
	assert_ok(sb_file_lock(b, 0, &err), &err);
	sb_file_unlock(b);
	sb_file_unlock(-1);
	(void)close(copy);
}

static void
lock_belongs_to_the_open_file(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	int a;
	int b;
	int ro;

	tmpdir_file(t, "lock", "");
	a = openat(t->fd, "lock", O_RDWR | O_CLOEXEC);
	b = openat(t->fd, "lock", O_RDWR | O_CLOEXEC);
	ro = openat(t->fd, "lock", O_RDONLY | O_CLOEXEC);
	assert_ok(sb_file_lock(a, 0, &err), &err);
	assert_ok(sb_file_lock(a, 0, &err), &err);
	assert_fails(sb_file_lock(b, 0, &err), SB_E_LOCKED, &err);
	assert_string_equal(err.msg, "held by another process");
	assert_fails(sb_file_lock(b, 30, &err), SB_E_LOCKED, &err);
	(void)close(a);
	assert_ok(sb_file_lock(b, 0, &err), &err);
	assert_fails(sb_file_lock(ro, 0, &err), SB_E_SYS, &err);
	assert_int_equal(err.sys, EBADF);
	(void)close(b);
	(void)close(ro);
}

static void
lock_waits_for_another_process(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	int ready[2];
	int done[2];
	char c;
	pid_t pid;
	int fd;

	tmpdir_file(t, "lock", "");
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(done, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		(void)close(done[1]);
		fd = openat(t->fd, "lock", O_RDWR | O_CLOEXEC);
		if (sb_file_lock(fd, 0, NULL) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		_exit(read(done[0], &c, 1) == 1 ? 0 : 2);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	fd = openat(t->fd, "lock", O_RDWR | O_CLOEXEC);
	assert_fails(sb_file_lock(fd, 0, &err), SB_E_LOCKED, &err);
	assert_int_equal(write(done[1], "x", 1), 1);
	/* It lets go by ending, sooner or later from now. */
	assert_ok(sb_file_lock(fd, 20000, &err), &err);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(fd);
	for (int i = 0; i < 2; i++) {
		(void)close(ready[i]);
		(void)close(done[i]);
	}
}

int
main(void)
{
#define IN_TMPDIR(fn) cmocka_unit_test_setup_teardown(fn, tmpdir_setup, tmpdir_teardown)
	const struct CMUnitTest tests[] = {
		IN_TMPDIR(replace_makes_and_replaces),
		IN_TMPDIR(replace_does_not_follow_a_link),
		IN_TMPDIR(failed_rename_leaves_no_temporary),
		IN_TMPDIR(failed_write_leaves_the_old_file),
		IN_TMPDIR(full_disk_leaves_the_old_file),
		IN_TMPDIR(read_obeys_the_ceiling),
		IN_TMPDIR(read_takes_large_files),
		IN_TMPDIR(read_takes_only_regular_files),
		cmocka_unit_test(write_all_waits_for_a_slow_reader),
		cmocka_unit_test(read_full_collects_until_the_end),
		cmocka_unit_test(bad_descriptors_are_errors),
		cmocka_unit_test(write_nosig_raises_no_signal),
		IN_TMPDIR(mkdirs_makes_parents),
		IN_TMPDIR(lock_belongs_to_the_open_file),
		IN_TMPDIR(unlock_does_not_wait_for_copies),
		IN_TMPDIR(lock_waits_for_another_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
