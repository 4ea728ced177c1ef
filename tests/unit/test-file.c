/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <string.h>

#include <base/file.h>

#include "tests/lib/tmpdir.h"

static void
replace_and_read(void **state)
{
	const struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 0);
	assert_ok(sb_file_replace(t->fd, "f", "one", 3, 0640, &err), &err);
	assert_ok(sb_file_replace(t->fd, "f", "three", 5, 0600, &err), &err);
	assert_ok(sb_file_read(t->fd, "f", 5, &b, &err), &err);
	assert_string_equal((char *)b.data, "three");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(replace_and_read, tmpdir_setup, tmpdir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
