/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <string.h>

#include "tests/lib/tmpdir.h"

static void
opens_beneath(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };

	for (int walk = 0; walk < 2; walk++) {
		int fd;

		sb_path_force_walk(walk);
		assert_ok(sb_path_mkdirs(t->fd, "a/b/c", 0755, &err), &err);
		assert_int_equal(symlinkat("b", t->fd, walk ? "a/l" : "a/m"), 0);
		fd = sb_path_open(t->fd, "a/b/c/f", O_RDWR | O_CREAT, 0644, &err);
		assert_ok(fd, &err);
		(void)close(fd);
		assert_fails(sb_path_open(t->fd, walk ? "a/l/c" : "a/m/c", O_RDONLY, 0, &err), SB_E_ESCAPE, &err);
	}
	sb_path_force_walk(false);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(opens_beneath, tmpdir_setup, tmpdir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
