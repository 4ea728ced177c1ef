/* SPDX-License-Identifier: MIT */
/* The line of --progress: what it says, and what of it where there is little room. */
#include "config.h"

#include <string.h>

#include <bin/common/progress.h>
#include <tests/lib/unit.h>

static const struct progress_view half = { .phase = "transfer",
	.counts = true,
	.files = 12,
	.files_total = 101,
	.bytes = 150000000,
	.bytes_total = 300000000,
	.rate = 25000000,
	.left = 6,
	.passed = 6 };

static void
assert_line(const struct progress_view *v, int columns, const char *want)
{
	char got[256];

	progress_line(v, columns, got, sizeof got);
	assert_string_equal(got, want);
	assert_true(strlen(got) < (size_t)columns);
}

static void
a_wide_terminal_gets_everything(void **state)
{
	(void)state;
	assert_line(&half, 120,
		"transfer [##########..........] 50% 12/101 files 150.0 MB of 300.0 MB 25.0 MB/s "
		"6s left");
}

static void
a_narrow_one_gets_the_most_important(void **state)
{
	char got[256];

	(void)state;
	assert_line(&half, 80, "transfer 50% 12/101 files 150.0 MB of 300.0 MB 25.0 MB/s 6s left");
	assert_line(&half, 60, "transfer 50% 150.0 MB of 300.0 MB 25.0 MB/s 6s left");
	assert_line(&half, 40, "transfer 50% 25.0 MB/s 6s left");
	assert_line(&half, 22, "transfer 50% 6s left");
	assert_line(&half, 14, "transfer 50%");
	assert_line(&half, 6, "trans");
	for (int columns = 2; columns < 200; columns++) {
		progress_line(&half, columns, got, sizeof got);
		assert_true(strlen(got) < (size_t)columns);
	}
}

static void
what_is_not_known_is_not_said(void **state)
{
	struct progress_view v = half;

	(void)state;
	v.rate = 0;
	v.left = -1;
	assert_line(&v, 60, "transfer 50% 12/101 files 150.0 MB of 300.0 MB");
	v.counts = false;
	assert_line(&v, 80, "transfer 6s");
	v.phase = "looking";
	v.counts = true;
	v.bytes = v.bytes_total = v.files_total = 0;
	v.passed = 0;
	assert_line(&v, 80, "looking 12 files");
}

/* 100 per cent is all of it, and nothing less. */
static void
the_end_is_not_told_before_it_comes(void **state)
{
	struct progress_view v = half;

	(void)state;
	v.bytes = v.bytes_total - 1;
	v.left = 0;
	assert_line(&v, 26, "transfer 99% 0s left");
	v.bytes = v.bytes_total;
	v.left = -1;
	assert_line(&v, 26, "transfer 100% 25.0 MB/s");
	v.left = 3700;
	assert_line(&v, 26, "transfer 100% 1h01m left");
	v.left = 61;
	assert_line(&v, 26, "transfer 100% 1m01s left");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wide_terminal_gets_everything),
		cmocka_unit_test(a_narrow_one_gets_the_most_important),
		cmocka_unit_test(what_is_not_known_is_not_said),
		cmocka_unit_test(the_end_is_not_told_before_it_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
