/* SPDX-License-Identifier: MIT */
/* The doctor's checks of this machine; those of another one are in test-deploy.c. */
#include "config.h"

#include <sbsync/doctor.h>

#include "tests/lib/tmpdir.h"

#define CHECKS 4

struct report {
	struct sb_doctor_result v[CHECKS];
	int n;
};

static void
note(const struct sb_doctor_result *r, void *arg)
{
	struct report *rep = arg;

	assert_in_range(rep->n, 0, CHECKS - 1);
	assert_int_equal(r->what, SB_DOCTOR_STATE_DIR + rep->n);
	assert_string_equal(r->place, "this machine");
	rep->v[rep->n++] = *r;
}

static int
examine(struct report *rep)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_error err = { 0 };
	int bad;

	rep->n = 0;
	bad = sb_doctor_check(NULL, &o, note, rep, &err);
	assert_int_equal(rep->n, CHECKS);
	return bad;
}

static void
doctor_tells_what_is_wrong_here(void **state)
{
	struct tmpdir *t = *state;
	struct report rep;
	char dir[300], ssh[300];
	int fd;

	(void)snprintf(dir, sizeof dir, "%s/state", t->path);
	(void)snprintf(ssh, sizeof ssh, "%s/ssh", t->path);
	fd = open(ssh, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	(void)close(fd);
	(void)setenv("SBSYNC_STATE_DIR", dir, 1);
	(void)setenv("SBSYNC_AGENT", "/bin/sh", 1);
	(void)setenv("SSH_AUTH_SOCK", "/nowhere", 1);
	(void)setenv("PATH", t->path, 1);
	assert_int_equal(examine(&rep), 0);
	assert_string_equal(rep.v[1].text, "/bin/sh");
	assert_string_equal(rep.v[2].text, ssh);
	assert_string_equal(rep.v[3].text, "/nowhere");
	for (int i = 0; i < CHECKS; i++)
		assert_int_equal(rep.v[i].state, SB_DOCTOR_GOOD);

	(void)setenv("SBSYNC_STATE_DIR", "/proc/no/state", 1);
	(void)setenv("SBSYNC_AGENT", "/nowhere/agent", 1);
	(void)setenv("PATH", "/nowhere", 1);
	(void)unsetenv("SSH_AUTH_SOCK");
	assert_int_equal(examine(&rep), 2);
	assert_int_equal(rep.v[0].state, SB_DOCTOR_BAD);
	assert_non_null(strstr(rep.v[0].text, "set SBSYNC_STATE_DIR"));
	assert_int_equal(rep.v[1].state, SB_DOCTOR_BAD);
	assert_int_equal(rep.v[2].state, SB_DOCTOR_WARN);
	assert_int_equal(rep.v[3].state, SB_DOCTOR_WARN);
	assert_string_equal(sb_doctor_name(SB_DOCTOR_KEYS), "keys");
}

static void
doctor_wants_another_machine(void **state)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_error err = { 0 };
	struct report rep = { 0 };

	(void)state;
	assert_fails(sb_doctor_check("./here", &o, note, &rep, &err), SB_E_USAGE, &err);
	assert_string_equal(err.msg,
		"./here is a path here; name another machine: [user@]host:path");
	assert_int_equal(rep.n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(doctor_tells_what_is_wrong_here, tmpdir_setup,
			tmpdir_teardown),
		cmocka_unit_test(doctor_wants_another_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
