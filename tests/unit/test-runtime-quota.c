/* SPDX-License-Identifier: MIT */
/*
 * A workspace's quota against what fills it from inside. Only ZFS has one: run by
 * tests/e2e/host-zfs.sh.
 */
#include "config.h"

#include <sys/stat.h>

#include <sb/host-exec.h>

#include "tests/lib/hostfix.h"

#define QUOTA (INT64_C(16) << 20)

static int
teardown(void **state)
{
	struct hostfix *f = *state;

	if (!f)
		return 0;
	if (!f->h)
		f->o.runtime = SB_HOST_RUNTIME_NONE;
	return hostfix_teardown(state);
}

static void
fill(void **state, const char *runtime)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_session s;
	struct hostfix *f;
	char out[4000];
	struct stat st;

	if (!hostfix_is_zfs())
		skip_because("the storage has no quota: SB_TEST_POOL names no pool");
	f = *state = calloc(1, sizeof *f);
	assert_non_null(f);
	assert_int_equal(setenv("SB_TEST_RUNTIME", runtime, 1), 0);
	hostfix_prepare(f);
	f->h = sb_host_open(&f->o, &f->err);
	if (!f->h)
		skip_because("%s", f->err.msg);
	o.base = f->base;
	o.quota = QUOTA;
	for (int i = 0; i < 2; i++) {
		o.id = i ? "other" : "full";
		assert_ok(sb_host_session_create(f->h, &o, NULL, &s, &f->err), &f->err);
		assert_int_equal(s.quota, QUOTA);
		sb_host_session_clear(&s);
	}
	assert_int_not_equal(
		hostfix_bash(f, "full",
			"dd if=/dev/urandom of=big bs=65536 count=1000 conv=fsync 2>&1", out,
			sizeof out),
		0);
	if (!strstr(out, "quota") && !strstr(out, "No space"))
		fail_msg("the disk was not full: %s", out);
	assert_int_equal(stat(hostfix_path(f, "full", "big"), &st), 0);
	assert_true(st.st_size <= QUOTA);
	/* Nobody else meets it. */
	assert_int_equal(hostfix_bash(f, "other",
				 "dd if=/dev/urandom of=some bs=65536 count=64 conv=fsync 2>&1",
				 out, sizeof out),
		0);
}

static void
quota_in_none(void **state)
{
	fill(state, "none");
}

static void
quota_in_bwrap(void **state)
{
	fill(state, "bwrap");
}

static void
quota_in_gvisor(void **state)
{
	fill(state, "gvisor");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(quota_in_none, teardown),
		cmocka_unit_test_teardown(quota_in_bwrap, teardown),
		cmocka_unit_test_teardown(quota_in_gvisor, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
