/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_TMPDIR_H
#define SB_TESTS_TMPDIR_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/path.h>

#include "tests/lib/unit.h"

/* A scratch directory of one test: `path` and a descriptor of it. */
struct tmpdir {
	char path[256];
	int fd;
};

static inline void
tmpdir_make(struct tmpdir *t)
{
	const char *base = getenv("TMPDIR");

	(void)snprintf(t->path, sizeof t->path, "%s/sb-test-XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(t->path))
		fail_msg("mkdtemp %s failed", t->path);
	t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(t->fd >= 0);
}

static inline void
tmpdir_remove(struct tmpdir *t)
{
	struct sb_error err = { 0 };
	char *slash = strrchr(t->path, '/');

	(void)close(t->fd);
	*slash = 0;
	t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_ok(sb_path_remove_tree(t->fd, slash + 1, &err), &err);
	(void)close(t->fd);
}

/* For cmocka_unit_test_setup_teardown: *state is the struct tmpdir. */
static inline int
tmpdir_setup(void **state)
{
	struct tmpdir *t = calloc(1, sizeof *t);

	if (!t)
		return -1;
	tmpdir_make(t);
	*state = t;
	return 0;
}

static inline int
tmpdir_teardown(void **state)
{
	tmpdir_remove(*state);
	free(*state);
	return 0;
}

/* A file with `text` beneath the directory; its parent must be there. */
static inline void
tmpdir_file(const struct tmpdir *t, const char *name, const char *text)
{
	int fd = openat(t->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

#endif
