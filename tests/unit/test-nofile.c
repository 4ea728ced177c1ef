/* SPDX-License-Identifier: MIT */
/*
 * Descriptors run out: each scenario runs with none to spare, with one, with two ... until it has
 * enough. Every run must end well or say EMFILE, and leave no descriptor behind.
 */
#include "config.h"

#include <errno.h>
#include <sys/resource.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <base/spawn.h>
#include <sb/cancel.h>

#include "tests/lib/tmpdir.h"

static struct sb_error err;

static int
use_cancel(const struct tmpdir *t)
{
	struct sb_cancel *c = sb_cancel_new(&err);

	(void)t;
	sb_cancel_free(c);
	return c ? 0 : err.code;
}

static int
use_files(const struct tmpdir *t)
{
	sb_auto(sb_buf) struct sb_buf b;
	int r = sb_file_replace(t->fd, "f", "text", 4, 0600, &err);

	sb_buf_init(&b, 0);
	return r < 0 ? r : sb_file_read(t->fd, "f", 100, &b, &err);
}

static int
use_paths(const struct tmpdir *t)
{
	struct stat st;
	int fd = sb_path_open(t->fd, "a/b/c/f", O_RDWR | O_CREAT, 0600, &err);
	int r = fd;

	if (fd >= 0)
		(void)close(fd);
	if (r >= 0)
		r = sb_path_stat(t->fd, "a/b/c/f", &st, &err);
	return r < 0 ? r : sb_path_mkdirs(t->fd, "a/b/d/e", 0755, &err);
}

static int
use_children(const struct tmpdir *t)
{
	static const char *const argv[] = { "/bin/sh", "-c", "cat; echo oops >&2; exit 3", NULL };
	sb_auto(sb_buf) struct sb_buf out;
	sb_auto(sb_buf) struct sb_buf eout;
	int r;

	(void)t;
	sb_buf_init(&out, 100);
	sb_buf_init(&eout, 100);
	r = sb_child_run(argv, NULL, "hello", 5, &out, &eout, NULL, sb_deadline_in(60000), &err);
	if (r >= 0 &&
		(r != 3 || strcmp((char *)out.data, "hello") ||
			strcmp((char *)eout.data, "oops\n")))
		return SB_E_CORRUPT;
	return r;
}

static int
count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* The number from which on no descriptor is open. */
static rlim_t
first_free(void)
{
	int top = 0;

	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			top = fd + 1;
	return (rlim_t)top;
}

static void
set_limit(rlim_t n)
{
	struct rlimit r;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
}

/* Fills the gaps below the highest descriptor, so that the limit alone says how many there are. */
static void
fill_gaps(void)
{
	rlim_t top = first_free();
	int fd;

	while ((fd = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0 && (rlim_t)fd < top)
		;
	(void)close(fd);
}

static void
survives(int (*scenario)(const struct tmpdir *t), const struct tmpdir *t, bool walk)
{
	struct rlimit before;
	rlim_t spare = 0;
	int r;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	fill_gaps();
	sb_path_force_walk(walk);
	do {
		int fds = count_fds();

		set_limit(first_free() + spare);
		r = scenario(t);
		set_limit(before.rlim_cur);
		if (r < 0 && err.sys != EMFILE)
			fail_msg("with %d to spare: %d %s", (int)spare, r, err.msg);
		assert_int_equal(count_fds(), fds);
	} while (r < 0 && ++spare < 100);
	sb_path_force_walk(false);
	assert_in_range(spare, 1, 20);
}

static void
cancel_survives(void **state)
{
	survives(use_cancel, *state, false);
}

static void
files_survive(void **state)
{
	survives(use_files, *state, false);
}

static void
paths_survive(void **state)
{
	const struct tmpdir *t = *state;

	assert_ok(sb_path_mkdirs(t->fd, "a/b/c", 0755, &err), &err);
	survives(use_paths, t, false);
	assert_ok(sb_path_remove_tree(t->fd, "a", &err), &err);
	assert_ok(sb_path_mkdirs(t->fd, "a/b/c", 0755, &err), &err);
	survives(use_paths, t, true);
}

static void
children_survive(void **state)
{
	survives(use_children, *state, false);
}

static void
deep_trees_go_with_few_descriptors(void **state)
{
	const struct tmpdir *t = *state;
	char path[201];
	struct rlimit before;
	struct stat st;
	int r;

	memset(path, 'd', sizeof path - 1);
	for (size_t i = 1; i < sizeof path - 1; i += 2)
		path[i] = '/';
	path[sizeof path - 2] = 0;
	assert_ok(sb_path_mkdirs(t->fd, path, 0755, &err), &err);
	for (size_t i = 1; i < 20; i++) {
		path[2 * i - 1] = 0;
		r = sb_path_open(t->fd, path, O_RDONLY, 0, &err);
		assert_ok(r, &err);
		assert_int_equal(mkdirat(r, "side", 0755), 0);
		(void)close(r);
		path[2 * i - 1] = '/';
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	fill_gaps();
	set_limit(first_free() + 4);
	r = sb_path_remove_tree(t->fd, "d", &err);
	set_limit(before.rlim_cur);
	assert_ok(r, &err);
	assert_fails(sb_path_stat(t->fd, "d", &st, &err), SB_E_NOTFOUND, &err);
}

int
main(void)
{
#define IN_TMPDIR(fn) cmocka_unit_test_setup_teardown(fn, tmpdir_setup, tmpdir_teardown)
	const struct CMUnitTest tests[] = {
		IN_TMPDIR(cancel_survives),
		IN_TMPDIR(files_survive),
		IN_TMPDIR(paths_survive),
		IN_TMPDIR(children_survive),
		IN_TMPDIR(deep_trees_go_with_few_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
