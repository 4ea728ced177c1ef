/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <string.h>

#include <base/spawn.h>

#include "tests/lib/unit.h"

static void
runs_and_collects(void **state)
{
	static const char *const argv[] = { "sh", "-c", "cat; echo oops >&2; exit 3", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf out;
	sb_auto(sb_buf) struct sb_buf eout;

	(void)state;
	o.search_path = true;
	sb_buf_init(&out, 100);
	sb_buf_init(&eout, 100);
	assert_int_equal(sb_run(argv, &o, "hello", 5, &out, &eout, NULL, sb_deadline_in(20000), &err), 3);
	assert_string_equal((char *)out.data, "hello");
	assert_string_equal((char *)eout.data, "oops\n");
}

static void
missing_program_is_not_found(void **state)
{
	static const char *const argv[] = { "/no/such/program", NULL };
	struct sb_error err = { 0 };
	struct sb_child c;

	(void)state;
	assert_fails(sb_spawn(argv, NULL, &c, &err), SB_E_NOTFOUND, &err);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_and_collects),
		cmocka_unit_test(missing_program_is_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
