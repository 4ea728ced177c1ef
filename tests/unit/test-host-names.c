/* SPDX-License-Identifier: MIT */
/*
 * The checks and parsers of a sandbox host that need no host: session ids, dataset names, labels,
 * sizes, classes of failures.
 */
#include "config.h"

#include "tests/lib/unit.h"

#include <string.h>

#include <host/storage/idcheck.h>
#include <host/state.h>
#include <host/storage/zfs.h>

static void
session_ids(void **state)
{
	static const char *const good[] = { "a", "sess-0123456789abcdef", "A.b_c-9", "0" };
	static const char *const bad[] = { "", "-a", ".a", "_a", "a/b", "a..b", "..", "a@b", "a b",
		"a\nb", "a:b", "a#b", "\xc3\xa9", "a%b", "a\x01" };
	char longest[SB_HOST_ID_MAX + 2];
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_ok(sb_idcheck_session(good[i], &err), &err);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_fails(sb_idcheck_session(bad[i], &err), SB_E_INVAL, &err);
	assert_fails(sb_idcheck_session(NULL, &err), SB_E_INVAL, &err);
	memset(longest, 'x', sizeof longest);
	longest[SB_HOST_ID_MAX] = '\0';
	assert_ok(sb_idcheck_session(longest, &err), &err);
	longest[SB_HOST_ID_MAX] = 'x';
	longest[SB_HOST_ID_MAX + 1] = '\0';
	assert_fails(sb_idcheck_session(longest, &err), SB_E_INVAL, &err);
}

static void
a_huge_name_is_one_short_line(void **state)
{
	const size_t size = 1 << 20;
	char *huge = test_malloc(size + 1);
	struct sb_error err = { 0 };

	(void)state;
	memset(huge, '\n', size);
	huge[size] = '\0';
	assert_fails(sb_idcheck_session(huge, &err), SB_E_INVAL, &err);
	assert_null(strchr(err.msg, '\n'));
	assert_fails(sb_idcheck_snapshot(huge, &err), SB_E_INVAL, &err);
	assert_fails(sb_idcheck_dataset(huge, &err), SB_E_INVAL, &err);
	assert_fails(sb_idcheck_full_snapshot(huge, &err), SB_E_INVAL, &err);
	test_free(huge);
}

static void
datasets(void **state)
{
	static const char *const good[] = { "tank", "tank/a", "tank/a:b/c_d.e-f", "t1/2" };
	static const char *const bad[] = { "", "/tank", "tank/", "tank//a", "tank/../a", "-tank",
		"tank/a@b", "tank/a b" };
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_ok(sb_idcheck_dataset(good[i], &err), &err);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_fails(sb_idcheck_dataset(bad[i], &err), SB_E_INVAL, &err);
	assert_ok(sb_idcheck_pool("tank", &err), &err);
	assert_fails(sb_idcheck_pool("tank/a", &err), SB_E_INVAL, &err);
	assert_ok(sb_idcheck_full_snapshot("tank/a@b", &err), &err);
	assert_fails(sb_idcheck_full_snapshot("tank/a", &err), SB_E_INVAL, &err);
	assert_fails(sb_idcheck_full_snapshot("tank/a@", &err), SB_E_INVAL, &err);
	assert_fails(sb_idcheck_full_snapshot("tank/a@b@c", &err), SB_E_INVAL, &err);
	assert_fails(sb_idcheck_full_snapshot("@b", &err), SB_E_INVAL, &err);
}

static void
labels(void **state)
{
	char *big = test_malloc(SB_HOST_LABEL_VALUE_MAX + 2);
	struct sb_host_label two[] = { { (char *)"a", (char *)"1" }, { (char *)"a", (char *)"2" } };
	struct sb_host_label ctl = { (char *)"a\nb", (char *)"1" };
	struct sb_host_label none = { (char *)"", (char *)"1" };
	struct sb_host_label large = { (char *)"a", big };
	struct sb_error err = { 0 };

	(void)state;
	memset(big, 'v', SB_HOST_LABEL_VALUE_MAX + 1);
	big[SB_HOST_LABEL_VALUE_MAX + 1] = '\0';
	assert_ok(sb_idcheck_labels(two, 1, &err), &err);
	assert_fails(sb_idcheck_labels(two, 2, &err), SB_E_INVAL, &err);
	assert_fails(sb_idcheck_labels(&ctl, 1, &err), SB_E_INVAL, &err);
	assert_fails(sb_idcheck_labels(&none, 1, &err), SB_E_INVAL, &err);
	assert_fails(sb_idcheck_labels(&large, 1, &err), SB_E_INVAL, &err);
	assert_fails(sb_idcheck_labels(two, SB_HOST_LABELS_MAX + 1, &err), SB_E_INVAL, &err);
	test_free(big);
}

static void
each_refusal_has_its_error(void **state)
{
	static const struct {
		enum sb_host_op op;
		enum sb_host_state st;
		int want;
	} rows[] = {
		{ SB_HOST_OP_TOOL, SB_HOST_CREATING, SB_E_INVALID_STATE },
		{ SB_HOST_OP_TOOL, SB_HOST_ACTIVE, 0 },
		{ SB_HOST_OP_TOOL, SB_HOST_PAUSED, SB_E_SESSION_PAUSED },
		{ SB_HOST_OP_TOOL, SB_HOST_PAUSING, SB_E_SESSION_PAUSED },
		{ SB_HOST_OP_TOOL, SB_HOST_ROLLING_BACK, SB_E_ROLLBACK_IN_PROGRESS },
		{ SB_HOST_OP_TOOL, SB_HOST_DESTROYING, SB_E_SESSION_DESTROYING },
		{ SB_HOST_OP_TOOL, SB_HOST_FAILED, SB_E_INVALID_STATE },
		{ SB_HOST_OP_PAUSE, SB_HOST_PAUSED, SB_E_SESSION_PAUSED },
		{ SB_HOST_OP_PAUSE, SB_HOST_DESTROYING, SB_E_SESSION_DESTROYING },
		{ SB_HOST_OP_RESUME, SB_HOST_ACTIVE, SB_E_INVALID_STATE },
		{ SB_HOST_OP_RESUME, SB_HOST_PAUSED, 0 },
		{ SB_HOST_OP_TURN, SB_HOST_PAUSED, SB_E_SESSION_PAUSED },
		{ SB_HOST_OP_TURN, SB_HOST_ROLLING_BACK, SB_E_ROLLBACK_IN_PROGRESS },
		{ SB_HOST_OP_SNAPSHOT, SB_HOST_CREATING, SB_E_INVALID_STATE },
		{ SB_HOST_OP_SNAPSHOT, SB_HOST_FAILED, 0 },
		{ SB_HOST_OP_SNAPSHOT, SB_HOST_DESTROYING, SB_E_SESSION_DESTROYING },
		{ SB_HOST_OP_ROLLBACK, SB_HOST_PAUSED, SB_E_SESSION_PAUSED },
		{ SB_HOST_OP_ROLLBACK, SB_HOST_FAILED, 0 },
		{ SB_HOST_OP_LAUNCH, SB_HOST_ROLLING_BACK, SB_E_ROLLBACK_IN_PROGRESS },
		{ SB_HOST_OP_DESTROY, SB_HOST_CREATING, 0 },
		{ SB_HOST_OP_DESTROY, SB_HOST_DESTROYING, 0 },
	};
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int r = sb_host_state_admit(rows[i].op, rows[i].st, "x", &err);

		if (r != rows[i].want)
			fail_msg("op %d in %s: got %d (%s), want %d", (int)rows[i].op,
				sb_host_state_name(rows[i].st), r, err.msg, rows[i].want);
		if (r < 0 && strncmp(err.msg, sb_code_text(r), strlen(sb_code_text(r))) != 0)
			fail_msg("message \"%s\" does not begin with \"%s\"", err.msg,
				sb_code_text(r));
	}
}

static void
nothing_leads_out_of_destroying(void **state)
{
	(void)state;
	for (int to = 0; to < SB_HOST_STATES; to++)
		assert_false(sb_host_state_may(SB_HOST_DESTROYING, (enum sb_host_state)to));
	for (int from = 0; from < SB_HOST_STATES; from++) {
		enum sb_host_state back;

		if (from != SB_HOST_DESTROYING)
			assert_true(
				sb_host_state_may((enum sb_host_state)from, SB_HOST_DESTROYING));
		assert_false(sb_host_state_may((enum sb_host_state)from, SB_HOST_CREATING));
		assert_true(
			sb_host_state_parse(sb_host_state_name((enum sb_host_state)from), &back));
		assert_int_equal(back, from);
	}
	assert_string_equal(sb_host_state_wire(SB_HOST_PAUSING), "active");
	assert_string_equal(sb_host_state_wire(SB_HOST_ROLLING_BACK), "active");
	assert_string_equal(sb_host_state_wire(SB_HOST_RESUMING), "paused");
}

static void
sizes_and_percents(void **state)
{
	uint64_t n = 1;
	double p = 0;

	(void)state;
	assert_true(sb_zfs_parse_size("11.0M", &n) && n == 11534336);
	assert_true(sb_zfs_parse_size("4096", &n) && n == 4096);
	assert_true(sb_zfs_parse_size("18446744073709551615", &n) && n == UINT64_MAX);
	assert_true(sb_zfs_parse_size("1.5T", &n) && n == 1649267441664);
	assert_true(sb_zfs_parse_size("512B", &n) && n == 512);
	assert_true(sb_zfs_parse_size("-", &n) && n == 0);
	assert_false(sb_zfs_parse_size("", &n));
	assert_false(sb_zfs_parse_size("x", &n));
	assert_false(sb_zfs_parse_size("1Q", &n));
	assert_false(sb_zfs_parse_size("99999999999999999999", &n));
	/* One per cent is one per cent, with and without the sign. */
	assert_true(sb_zfs_parse_percent("1", &p) && p > 0.0099 && p < 0.0101);
	assert_true(sb_zfs_parse_percent("1%", &p) && p > 0.0099 && p < 0.0101);
	assert_true(sb_zfs_parse_percent("100", &p) && p > 0.999 && p < 1.001);
	assert_true(sb_zfs_parse_percent("-", &p) && p < 0);
	assert_false(sb_zfs_parse_percent("x", &p));
	assert_false(sb_zfs_parse_percent("1x", &p));
}

static void
failures_have_classes(void **state)
{
	static const struct {
		int exit_code;
		const char *text;
		int want;
	} rows[] = {
		{ 1, "cannot open 'x': dataset does not exist", SB_E_NOTFOUND },
		{ 1, "cannot open 'x': no such pool", SB_E_NOTFOUND },
		{ 1, "cannot create 'x': dataset already exists", SB_E_EXISTS },
		{ 1, "cannot destroy 'x': dataset is busy", SB_E_STORAGE_BUSY },
		{ 1, "umount: RESOURCE BUSY", SB_E_STORAGE_BUSY },
		{ 1, "cannot create: permission denied", SB_E_DENIED },
		{ 1, "cannot create: pool is full", SB_E_POOL_FULL },
		{ 1, "cannot create: out of space", SB_E_NOSPACE },
		{ 1, "cannot destroy 'x': filesystem has dependent clones\nuse '-R'",
			SB_E_SNAPSHOT_IN_USE },
		{ 1, "cannot rollback to 'x': clones of previous snapshots exist",
			SB_E_SNAPSHOT_IN_USE },
		{ 1, "cannot release 'k' from 'x': no such tag on this dataset",
			SB_E_HOLD_NOT_FOUND },
		{ 1, "connect: No such file\nPlease make sure that the zfs-fuse daemon is running.",
			SB_E_UNAVAILABLE },
		{ 127, "", SB_E_UNSUPPORTED },
		{ 1, "something else", SB_E_STORAGE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (sb_zfs_classify(rows[i].exit_code, rows[i].text) != rows[i].want)
			fail_msg("\"%s\": got %d, want %d", rows[i].text,
				sb_zfs_classify(rows[i].exit_code, rows[i].text), rows[i].want);
}

static void
diff_paths_are_unescaped(void **state)
{
	char a[] = "/m/a\\0040b\\0012c\\0134";
	char b[] = "\\0377\\004x\\";

	(void)state;
	sb_zfs_unescape(a);
	assert_string_equal(a, "/m/a b\nc\\");
	sb_zfs_unescape(b);
	assert_string_equal(b, "\377\\004x\\");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(session_ids),
		cmocka_unit_test(a_huge_name_is_one_short_line),
		cmocka_unit_test(datasets),
		cmocka_unit_test(labels),
		cmocka_unit_test(each_refusal_has_its_error),
		cmocka_unit_test(nothing_leads_out_of_destroying),
		cmocka_unit_test(sizes_and_percents),
		cmocka_unit_test(failures_have_classes),
		cmocka_unit_test(diff_paths_are_unescaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
